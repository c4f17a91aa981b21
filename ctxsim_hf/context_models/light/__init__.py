"""A bag-of-words generator that trains on one machine (Eq. 2)."""
