"""Peers that a user of SFIHILO might take instead; they live in an environment of their own."""
