"""The training loop over accelerate; no model of ours is named here."""
