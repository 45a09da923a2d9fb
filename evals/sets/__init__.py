"""Sets of files and questions with their right answers, asked of the service: `python -m evals.sets --help`.

A set is a folder here: `files/`, and `questions.jsonl` with one question a line. README.md describes the sets and the
format. Run it from a checkout; it is not part of the installed package.
"""
