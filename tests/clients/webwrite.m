function response = webwrite(url, data, options)
% Stands in for MATLAB's webwrite in GNU Octave: sends the text as it is, with the options'
% media type and header fields, and raises with MATLAB's identifiers.
    assert(ischar(data) && isa(options, 'weboptions') && strcmp(options.ContentType, 'text'));
    command = sprintf('curl --silent --noproxy "*" --max-time %g --write-out "\\n%%{http_code}"', ...
        options.Timeout);
    command = [command sprintf(' --header "Content-Type: %s"', options.MediaType)];
    for row = 1:size(options.HeaderFields, 1)
        command = [command sprintf(' --header "%s: %s"', options.HeaderFields{row, :})];
    end
    path = tempname();
    file = fopen(path, 'w'); fwrite(file, data); fclose(file);
    [failed, output] = system(sprintf('%s --data-binary "@%s" "%s"', command, path, url));
    delete(path);
    if failed
        error('MATLAB:webservices:CopyContentToDataStreamError', 'no connection');
    end
    cut = find(output == sprintf('\n'), 1, 'last');
    status = str2double(output(cut + 1:end));
    if status >= 400
        error(sprintf('MATLAB:webservices:HTTP%dStatusCodeError', status), ...
            'The server returned the status %d.', status);
    end
    response = output(1:cut - 1);
end
