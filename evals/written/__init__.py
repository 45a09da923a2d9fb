"""Answers as a capable model writes them, served to the service and counted: `python -m evals.written --help`.

README.md describes the format and how answers are written. Run it from a checkout; it is not part of the installed
package.
"""
