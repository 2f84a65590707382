"""Shows results on a terminal and in a notebook."""
