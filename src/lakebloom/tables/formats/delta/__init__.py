"""Tables of Delta Lake, read from their logs without Spark and without Delta's own libraries."""
