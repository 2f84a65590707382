"""Indexes: build, maintain, query and look up. No Spark."""
