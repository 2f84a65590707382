"""Keys in files of real size."""
