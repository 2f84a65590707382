"""Erasure: where the rows of some keys are, in every version that a table keeps, and the proof that they are gone."""
