"""From any pile of documents to chunks, contexts and a tokenizer."""
