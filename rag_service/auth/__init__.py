"""Who is asking: API keys, bearer tokens and sessions; signing in with a provider or a password."""
