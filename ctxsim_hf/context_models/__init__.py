"""Models of how well a sentence fits a context, one folder for each kind."""
