"""Embedding models: packaged, on servers, and what is wrapped around each."""
