function answer = sfihilo_post(url, token, text)
%SFIHILO_POST Posts JSON with the program curl, for GNU Octave, whose webwrite sends forms only.
%
%   The token and the text go through a file that only this user can read, never the command line.

    folder = tempname();
    [made, why] = mkdir(folder);
    if ~made, error('sfihilo:files', '%s: %s', folder, why); end
    cleaner = onCleanup(@() remove(folder));
    if isunix(), system(sprintf('chmod 700 "%s"', folder)); end
    body = fullfile(folder, 'body');
    settings = fullfile(folder, 'settings');
    written(body, text);
    lines = sprintf(['url = "%s"\nheader = "Content-Type: application/json"\n' ...
        'data-binary = "@%s"\nmax-time = 10\nsilent\nshow-error\nnoproxy = "*"\n' ...
        'write-out = "\\n%%{http_code}"\n'], url, strrep(body, '\', '/'));
    if ~isempty(token), lines = [lines sprintf('header = "Authorization: Bearer %s"\n', token)]; end
    written(settings, lines);
    [failed, output] = system(sprintf('curl --config "%s" 2>&1', settings));
    if failed
        error('sfihilo:network', '%s: %s', url, strtrim(output));
    end
    cut = find(output == sprintf('\n'), 1, 'last');
    status = str2double(output(cut + 1:end));
    answer = output(1:cut - 1);
    if status >= 400
        error(sprintf('sfihilo:HTTP%d', status), 'HTTP %d: %s', status, answer);
    end
end

function written(path, text)
    file = fopen(path, 'w');
    fwrite(file, unicode2native(text, 'UTF-8'));
    fclose(file);
end

function remove(folder)
    delete(fullfile(folder, '*'));
    rmdir(folder);
end
