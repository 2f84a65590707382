"""Predicates: which units can match, and which rows do. The only layer that may say "cannot match". No I/O."""
