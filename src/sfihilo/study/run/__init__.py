"""Running the study: units, engines, stored results."""
