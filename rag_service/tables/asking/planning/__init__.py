"""From a question to operations over tables: what its words ask, and which columns and values they name."""
