"""The command line `sfihilo`."""
