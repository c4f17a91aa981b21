"""Find duplicates and communities among the sentences of a corpus."""
