"""Conditions as SQL text: read into predicates, and written from them."""
