"""What a session gives out: advice, tables, exports, report."""
