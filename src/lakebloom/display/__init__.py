"""How results look, on a terminal and in a notebook."""
