"""The training loop over accelerate, which knows no particular model."""
