"""A BiLSTM classifier of whether a sentence belongs in a context (Eq. 1)."""
