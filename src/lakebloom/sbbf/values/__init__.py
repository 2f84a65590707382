"""Values as a caller gives them, made ready to be hashed."""
