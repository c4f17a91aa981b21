"""The paper's seq2seq generator (Eq. 2)."""
