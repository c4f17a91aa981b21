"""The terms of the fit score S (Eq. 3), each of which some context model answers."""

TERMS = ("discriminative", "sentence", "left", "right")
DIRECTIONS = TERMS[1:]  # what a generator generates; the place in this tuple is the `direction_ids` value
