-- With corpora_owner it serves both halves of the policy on corpora, which every other policy asks.
CREATE INDEX corpora_kind ON rag.corpora (kind);

-- A page of a corpus, newest first, and their number without reading them.
CREATE INDEX documents_created ON rag.documents (corpus_id, created_at DESC, id) INCLUDE (expires_at);
CREATE INDEX documents_source ON rag.documents (corpus_id, source);
