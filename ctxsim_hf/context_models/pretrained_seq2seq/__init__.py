"""Pretrained BART and T5 as context models, used as they are."""
