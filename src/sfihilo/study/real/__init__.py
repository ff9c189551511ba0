"""How well models predict choices of real people, each person learned alone."""
