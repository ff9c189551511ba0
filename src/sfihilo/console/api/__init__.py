"""The HTTP interface, one file per noun."""
