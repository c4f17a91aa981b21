"""Pretrained causal language models as context models."""
