"""Storage in a local directory."""
