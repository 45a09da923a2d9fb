"""Measured in the background: the relevance of an embedding model that no index knows, and the judge."""
