"""The life of an index: create, refresh, optimize, delete, restore, vacuum, verify, and asking it. No Spark."""
