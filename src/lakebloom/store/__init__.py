"""The index format: a log of commits, immutable segments, tiles, global filters. Specified in docs/FORMAT.md."""
