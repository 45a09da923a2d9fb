-- What a sync brought into a corpus: one row for each file of a folder or page of a site. Placeholder: {role}, the
-- unprivileged role.

CREATE TABLE rag.synced_files (
    corpus_id    uuid NOT NULL REFERENCES rag.corpora ON DELETE CASCADE,
    target       text NOT NULL,              -- the folder or address
    path         text NOT NULL,              -- name of the document; for a copy of another file, its own name
    document_id  uuid NOT NULL REFERENCES rag.documents ON DELETE CASCADE,
    size_bytes   bigint NOT NULL,            -- size, mtime_ns and etag as they were before it was read
    mtime_ns     bigint NOT NULL,            -- modified, in nanoseconds since 1970; -1: too recent to be relied on
    etag         text NOT NULL DEFAULT '',
    content_hash text NOT NULL,              -- SHA-256 of the bytes, hex
    brought      boolean NOT NULL,           -- false: the document was there before, and stays when the file goes
    PRIMARY KEY (corpus_id, target, path)
);
CREATE INDEX synced_files_document ON rag.synced_files (document_id);

ALTER TABLE rag.synced_files ENABLE ROW LEVEL SECURITY;
-- Names of folders concern those who write to the corpus, not its readers.
CREATE POLICY synced_files_own ON rag.synced_files FOR ALL
    USING (corpus_id IN (SELECT c.id FROM rag.corpora c WHERE rag.may_write(c)))
    WITH CHECK (corpus_id IN (SELECT c.id FROM rag.corpora c WHERE rag.may_write(c)));

GRANT SELECT, INSERT, UPDATE, DELETE ON rag.synced_files TO {role};
