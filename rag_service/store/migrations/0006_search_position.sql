-- Each corpus counts the changes of what a search finds in it. A read replica that shows at least the count
-- of the primary shows at least its content (store/replication/replica.py). Changes of a corpus queue at its row here
-- until they are committed, so that a count stands for all changes before it.

ALTER TABLE rag.corpus_statistics ADD COLUMN version bigint NOT NULL DEFAULT 0;

CREATE OR REPLACE FUNCTION rag.count_chunks() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = rag, pg_temp AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO rag.corpus_statistics AS s (corpus_id, chunk_count, term_count, version)
        SELECT corpus_id, count(*), sum(length), 1 FROM changed GROUP BY corpus_id ORDER BY corpus_id
        ON CONFLICT (corpus_id) DO UPDATE SET chunk_count = s.chunk_count + excluded.chunk_count,
                                              term_count = s.term_count + excluded.term_count,
                                              version = s.version + 1;
    ELSE
        UPDATE rag.corpus_statistics s
        SET chunk_count = s.chunk_count - less.chunks, term_count = s.term_count - less.terms, version = s.version + 1
        FROM (SELECT corpus_id, count(*) AS chunks, sum(length) AS terms FROM changed GROUP BY corpus_id) less
        WHERE s.corpus_id = less.corpus_id;
    END IF;
    RETURN NULL;
END $$;

-- Chunks tell of documents that come and go; this of new expiry, tags or titles. A corpus without a row
-- here holds no chunks, and nothing that a search could find.
CREATE FUNCTION rag.count_document_changes() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = rag, pg_temp AS $$
BEGIN
    UPDATE rag.corpus_statistics s SET version = s.version + 1
    WHERE s.corpus_id IN (SELECT corpus_id FROM changed);
    RETURN NULL;
END $$;
CREATE TRIGGER documents_changed AFTER UPDATE ON rag.documents
    REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION rag.count_document_changes();
