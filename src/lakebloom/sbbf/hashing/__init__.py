"""From values to hashes: the bytes that a value is hashed as, and XXH64 over them."""
