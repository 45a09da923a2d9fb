"""Fits the relevance of an embedding model to the question sets that are shipped, in the background."""
