"""Pairs of sentences labelled by Origin, any number of them, and the data set made of them."""
