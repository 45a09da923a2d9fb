"""Who is asking: API keys and bearer tokens."""
