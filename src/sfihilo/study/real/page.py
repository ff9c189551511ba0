"""The page about real people."""
