"""A bag-of-words generator, for one machine."""
