"""Files to text with places: one parser a format, run in a sandbox behind a LlamaIndex reader."""
