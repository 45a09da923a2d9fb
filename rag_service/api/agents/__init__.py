"""Agents, chats, conversations and feedback."""
