"""Measure how well similarities agree with human judgements."""
