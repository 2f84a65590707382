"""Builds indexes, and estimates their cost and gain before."""
