"""Delta and Iceberg tables beside plain files, and erasure."""
