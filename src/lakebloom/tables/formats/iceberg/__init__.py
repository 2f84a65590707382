"""Tables of Iceberg, read from their metadata and manifests without Spark."""
