"""The only layer that imports pyspark. It works on classic sessions and on Spark Connect."""
