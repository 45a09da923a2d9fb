-- The tags in use, without reading the documents that have none.
CREATE INDEX documents_tagged ON rag.documents (corpus_id) WHERE tags <> '{}';
