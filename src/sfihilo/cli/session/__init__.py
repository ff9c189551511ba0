"""The commands of `sfihilo session`, typed one at a time."""
