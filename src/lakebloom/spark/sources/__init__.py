"""Resolves a DataFrame or a table name to files, columns and options."""
