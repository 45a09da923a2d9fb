"""Office files: Word, Excel, PowerPoint and OpenDocument."""
