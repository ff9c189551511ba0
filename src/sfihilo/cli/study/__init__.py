"""The commands of `sfihilo study`."""
