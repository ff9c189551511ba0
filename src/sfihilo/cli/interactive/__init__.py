"""`sfihilo session run`: a whole session in one terminal, key by key."""
