"""The console: HTTP API, pages for operator and participant, devices. No numerics here."""
