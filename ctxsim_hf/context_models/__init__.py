"""Models that say how well a sentence fits a context, one folder for each kind."""
