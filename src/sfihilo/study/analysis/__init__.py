"""From results to measures, statistics, claims and pages."""
