"""Building indexes, and what is known of a table before one is built."""
