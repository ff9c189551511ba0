"""Physical units, bounds, constraints and the safety check."""
