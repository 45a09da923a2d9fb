"""Structured answers over a governed knowledge base: required data, drafted responses, their check."""
