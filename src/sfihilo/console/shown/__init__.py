"""What pages and programs are shown: views of a session, what was learned, texts, pages."""
