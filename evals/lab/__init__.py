"""Makes the weights that the package ships: `python -m evals.lab --help`.

Run it from a checkout; it is not part of the installed package.
"""
