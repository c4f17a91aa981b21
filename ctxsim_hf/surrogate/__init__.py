"""Training, export and search of surrogates."""
