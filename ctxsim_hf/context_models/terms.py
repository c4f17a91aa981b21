"""The terms of the fit score S (Eq. 3), which context models answer."""

TERMS = ("discriminative", "sentence", "left", "right")
DIRECTIONS = TERMS[1:]  # what a generator generates; `direction_ids` are indices into this tuple
