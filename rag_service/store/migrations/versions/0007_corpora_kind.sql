-- With corpora_owner it serves both halves of the policy on corpora, which every other policy asks.
CREATE INDEX corpora_kind ON rag.corpora (kind);
