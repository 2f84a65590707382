"""Filters as bytes: bitsets and the header that the Parquet specification defines."""
