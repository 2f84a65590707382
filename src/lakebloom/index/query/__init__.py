"""Queries: prunes the files of scans, and explains what was skipped."""
