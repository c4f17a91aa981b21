"""Where a sentence may have come from: the chunks that share its words."""
