"""What the study varies: conditions and panels."""
