"""The console: operator and participant in the browser, devices on the wire; no numerics.

`serve` runs it. Everything is done through `Lab` and `Session` of `sfihilo.experiment`; the HTTP
API and the pages only say what is wanted and show what is in the record.
"""
