"""Models and what runs them: chat models, embeddings, rerankers, judges, and the answerer that quotes."""
