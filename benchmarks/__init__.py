"""Measurements beside the product: the plain transcription, the clock, and the peers."""
