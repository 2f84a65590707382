"""The optimizer rule and what it calls in Python."""
