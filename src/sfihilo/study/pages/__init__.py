"""The pages of the study, written from stored results: Markdown, claims and their verdicts."""
