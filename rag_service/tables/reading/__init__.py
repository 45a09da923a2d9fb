"""Reads typed tables from the stored text of a document."""
