"""What the parsers of several formats share: text building, names, tables, archives, encodings."""
