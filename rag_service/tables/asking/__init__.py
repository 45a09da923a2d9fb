"""From a question to operations over tables and their results in words."""
