"""Sentences to vectors: the surrogate's model and whatever runs it."""
