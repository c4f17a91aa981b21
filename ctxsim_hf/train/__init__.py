"""Training through accelerate: one loop, one module per model."""
