"""Documents, sentences, chunks, words and tokens."""
