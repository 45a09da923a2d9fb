"""Tools over the documents: search, read, compute."""
