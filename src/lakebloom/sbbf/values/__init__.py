"""Values as given by a caller, prepared for hashing."""
