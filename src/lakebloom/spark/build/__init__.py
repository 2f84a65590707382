"""Building indexes with Spark jobs."""
