"""Draw pairs of corpus sentences and label them with an origin."""
