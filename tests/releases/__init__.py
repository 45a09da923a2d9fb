"""What each release stored, kept so that later ones show that they still read it.

`python -m tests.releases.keep` adds the database and the exported corpus of the present version, before it is released.
"""
