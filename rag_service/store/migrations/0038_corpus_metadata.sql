-- What programs note of a corpus, such as the metadata of an OpenAI vector store.
ALTER TABLE rag.corpora ADD COLUMN metadata jsonb NOT NULL DEFAULT '{}';
