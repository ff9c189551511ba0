"""A session with a person: trials, record, proposals, lab."""
