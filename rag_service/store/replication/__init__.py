"""Searches on a read replica that shows all that the primary does."""
