"""A second, closer look at what was found."""
