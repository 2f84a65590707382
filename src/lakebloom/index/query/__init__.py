"""Queries: what indexes did for them."""
