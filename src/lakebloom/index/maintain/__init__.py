"""Looking after indexes that exist."""
