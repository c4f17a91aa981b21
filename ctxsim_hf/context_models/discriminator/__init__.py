"""A BiLSTM that tells whether a sentence belongs in a context (Eq. 1)."""
