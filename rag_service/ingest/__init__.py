"""From files to stored chunks."""
