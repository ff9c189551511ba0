"""Text lines with acknowledgement to real-time targets, over UDP and TCP."""
