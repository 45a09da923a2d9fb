"""From a question to ranked passages: plan → retriever → fusion → postprocess."""
