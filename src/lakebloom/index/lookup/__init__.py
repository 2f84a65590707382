"""Rows by key, without Spark."""
