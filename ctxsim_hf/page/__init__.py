"""A page in the browser: compare two sentences, search documents, look through duplicates."""
