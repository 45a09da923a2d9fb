"""PDF: words, lines, columns, tables and headings of a page."""
