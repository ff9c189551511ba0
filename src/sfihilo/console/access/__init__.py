"""Who may do what, and what every request must satisfy."""
