"""Predicates evaluated on rows, exactly as Spark does."""
