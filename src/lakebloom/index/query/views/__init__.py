"""Several ways to see the units of a snapshot: as read by a session, combined, side by side."""
