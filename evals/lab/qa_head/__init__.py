"""Trains the question-answering head of the packaged model: see `rag_service/models/embedding/qa_head.py`."""
