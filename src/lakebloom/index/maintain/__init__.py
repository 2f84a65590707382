"""Maintains indexes: optimize, vacuum, verify, repair, status."""
