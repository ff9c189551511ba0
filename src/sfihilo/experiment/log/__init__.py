"""The durable, hash-chained log of events."""
