"""Spark: sources, the build job. The only layer that imports pyspark; it works on classic sessions and on Connect."""
