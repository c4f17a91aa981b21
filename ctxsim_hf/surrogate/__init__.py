"""Sentences to vectors with a trained surrogate, and what vectors are for."""
