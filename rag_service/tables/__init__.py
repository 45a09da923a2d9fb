"""Typed tables of sheets and files, and answers computed from their rows, each with the cells that it comes from."""
