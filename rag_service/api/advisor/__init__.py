"""The advisor's routes."""
