"""Erasure plans and their proof."""
