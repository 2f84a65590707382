"""Storage through the Hadoop client of a Spark session."""
