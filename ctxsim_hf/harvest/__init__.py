"""Pairs of sentences, labelled by an origin."""
