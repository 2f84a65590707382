"""Which units cannot match a predicate. Only this package says "cannot match"."""
