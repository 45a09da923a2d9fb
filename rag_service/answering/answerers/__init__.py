"""Those who answer, a module each: the outline of a file, an operation over a table, a model, quotes."""
