"""Models and what runs them: chat models, embeddings, rerankers, judges."""
