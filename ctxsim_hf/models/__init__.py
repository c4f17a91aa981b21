"""The contextual models. Nothing is imported here, so that their configurations can be had without torch."""
