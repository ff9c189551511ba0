"""What a session's events say, as values: trials, answers, where the device may be."""
