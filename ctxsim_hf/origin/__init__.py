"""Similarity by contexts, with reasons."""
