"""Text files: plain text, Markdown, RTF, CSV, JSON, YAML, calendars and subtitles."""
