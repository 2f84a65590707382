"""Delta tables beside plain files, and erasure."""
