"""Reranking: a second, closer look at the passages that were found."""
