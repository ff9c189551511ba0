function sfihilo_device_loop(client, session, apply, measure, stop, finished)
%SFIHILO_DEVICE_LOOP Follows a session: applies, measures and stops a device.
%
%   sfihilo_device_loop(client, 'P07-1', @set_device, @read_outcome, @stop_device)
%
%   apply(policy)      sets the device, returns when it is set; policy.peak_torque, ...
%   values = measure() struct('comfort', 6.5), or [] while the walk is not over
%   stop()             brings the device to rest; also called without the console for 5 seconds
%   finished()         optional: true ends the loop

    if nargin < 6, finished = @() false; end
    cleaner = onCleanup(stop);
    stop();  % where the device is at the begin is not known
    resting = true;
    applied = NaN;
    measured = NaN;
    heard = tic();
    while ~finished()
        try
            wanted = client.heartbeat(session);
            heard = tic();
        catch problem
            if ~isempty(regexp([problem.identifier ' ' problem.message], 'HTTP ?4\d\d', 'once'))
                rethrow(problem)
            end
            if toc(heard) > 5 && ~resting
                stop(); resting = true; applied = NaN;
            end
            pause(0.5)
            continue
        end
        number = NaN;
        if ~isempty(wanted.trial), number = wanted.trial.number; end
        gone = ~isnan(applied) && applied ~= measured && ~isequal(applied, number);
        if (wanted.stop || gone) && ~resting
            stop(); resting = true; applied = NaN;
        end
        if wanted.apply && ~wanted.stop
            if ~isequal(number, applied)
                resting = false;
                apply(wanted.trial.policy);
                applied = number;
                tell(@() client.applied(session, number));
            elseif ~isequal(number, measured)
                values = measure();
                if ~isempty(values)
                    tell(@() client.outcome(session, number, values));
                    measured = number;
                end
            end
        end
        pause(0.2)
    end
end

function tell(request)
    % What the console refuses is left to the operator, who sees it.
    try
        request();
    catch problem
        if isempty(regexp([problem.identifier ' ' problem.message], 'HTTP ?(400|409|422)', 'once'))
            rethrow(problem)
        end
        warning('sfihilo:refused', '%s', problem.message)
    end
end
