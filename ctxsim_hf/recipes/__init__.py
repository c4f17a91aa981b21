"""Run several stages in a row: adaptation to a corpus, and ablations of the result."""
