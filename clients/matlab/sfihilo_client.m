function client = sfihilo_client(address, code, token)
%SFIHILO_CLIENT Requests to a SFIHILO console, for MATLAB R2016b or later and GNU Octave 7 or later.
%
%   client = sfihilo_client('http://127.0.0.1:8765', 'ABCD-2345')   a code from the operator's page
%   client = sfihilo_client('http://127.0.0.1:8765', '', token)     the token of an earlier code
%
%   client.token                                   keep it as you keep a password
%   wanted = client.heartbeat(session)             wanted.trial, wanted.apply, wanted.stop
%   wanted = client.device(session)                the same without a sign of life
%   client.applied(session, trial)                 the trial's policy is on the device
%   client.outcome(session, trial, values)         struct('comfort', 6.5, 'speed', NaN): NaN is missing
%   client.stop(session, why)                      stops the device, puts the session on hold
%   client.session(session)                        what the operator's page shows (operators)
%   client.act(session, action, body)              client.act('P07-1', 'ask', struct())
%   client.get(path), client.post(path, body)      anything else of the API
%
%   Requests that change something carry a key and are repeated with the same key when the network
%   fails: they are done once.

    if nargin < 3, token = ''; end
    address = regexprep(address, '/+$', '');
    if isempty(token) && nargin > 1 && ~isempty(code)
        granted = post_json([address '/api/enter'], '', struct('code', code, 'bearer', true));
        token = granted.token;
    end
    at = @(kind, session, rest) ['/api/' kind '/' session rest];
    client = struct();
    client.token = token;
    client.get = @(path) get_json([address path], token);
    client.post = @(path, body) post_json([address path], token, body);
    client.device = @(session) client.get(at('device', session, ''));
    client.heartbeat = @(session) post_json([address at('device', session, '/heartbeat')], token, struct());
    client.applied = @(session, trial) client.post(at('device', session, '/applied'), ...
        with_key(struct('trial', trial)));
    client.outcome = @(session, trial, values) client.post(at('device', session, '/outcome'), ...
        with_key(struct('trial', trial, 'outcome', values)));
    client.stop = @(session, why) client.post(at('sessions', session, '/stop'), ...
        with_key(struct('why', why)));
    client.session = @(session) client.get(at('sessions', session, ''));
    client.act = @(session, action, body) client.post(at('sessions', session, ['/' action]), ...
        with_key(body));
end

function body = with_key(body)
    % The time distinguishes two computers' and two starts' equal random numbers.
    body.key = sprintf('%s-%08x%08x', datestr(now, 'yyyymmddHHMMSSFFF'), ...
        floor(rand * 2^32), floor(rand * 2^32));
end

function answer = get_json(url, token)
    answer = jsondecode(webread(url, options_of(token)));
end

function answer = post_json(url, token, body)
    text = jsonencode(body);  % NaN becomes null: a missing value
    text = regexprep(text, '^\[\]$', '{}');
    attempts = 4;
    for attempt = 1:attempts
        try
            answer = jsondecode(send_json(url, token, text));
            return
        catch problem
            % A refusal is final; only what may be the network is tried again.
            refused = ~isempty(regexp([problem.identifier ' ' problem.message], 'HTTP ?4\d\d', 'once'));
            if refused || attempt == attempts
                rethrow(problem)
            end
            pause(0.2 * 2^attempt)
        end
    end
end

function text = send_json(url, token, text)
    if exist('OCTAVE_VERSION', 'builtin') && isempty(getenv('SFIHILO_WEBWRITE'))
        % Octave's webwrite sends forms only; SFIHILO_WEBWRITE=1 uses it all the same, once it can.
        text = sfihilo_post(url, token, text);
    else
        text = webwrite(url, text, options_of(token));
    end
end

function options = options_of(token)
    options = weboptions('ContentType', 'text', 'MediaType', 'application/json', 'Timeout', 10);
    if ~isempty(token)
        options.HeaderFields = {'Authorization', ['Bearer ' token]};
    end
end
