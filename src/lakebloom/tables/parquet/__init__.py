"""Parquet files as the files of a table: what Spark takes their columns for."""
