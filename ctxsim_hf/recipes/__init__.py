"""Stages in a row: adapting to documents, and ablations of what came out."""
