"""Answers questions from a team's own documents and proves every answer."""

__version__ = "0.1.0"
