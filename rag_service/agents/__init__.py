"""Conversations: agents with their own models and limits, over what was said before."""
