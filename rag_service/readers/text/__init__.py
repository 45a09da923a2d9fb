"""Plain text, Markdown and delimited files."""
