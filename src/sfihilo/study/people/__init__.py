"""Simulated people and their noise."""
