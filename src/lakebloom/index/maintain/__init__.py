"""Keeping an index in good order."""
