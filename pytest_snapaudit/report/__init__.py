"""How results are shown and carried out of the process that found them."""
