"""Corpora, documents and uploads."""
