"""Answers without a language model: quotes from the passages."""
