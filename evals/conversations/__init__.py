"""Conversations with a capable model, turn by turn: `python -m evals.conversations --help`.

README.md describes the format. Run it from a checkout; it is not part of the installed package.
"""
