"""The answerer without a model: the sentences of the passages that answer best."""
