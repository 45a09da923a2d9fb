"""Answers computed from tables: runs the operations that a question asks for and writes what they give."""
