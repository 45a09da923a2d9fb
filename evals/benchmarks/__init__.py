"""Speed of the service, measured beside stock LlamaIndex: `python -m evals.benchmarks --help`.

Run it from a checkout; it is not part of the installed package.
"""
