-- Postings packed into bytes and held by their index. Placeholder: {role}, the unprivileged role.
--
-- Documents arrive one after the other, so the rows of a term lie on as many pages as there are documents;
-- a search read thousands of pages. The index now holds all that a search reads, sorted by term: rows in
-- pages that VACUUM has seen are not visited at all. Three arrays a row gave way to one string of bytes
-- (567 MB and 221 MB of index → 320 MB and 296 MB for 3.7 million rows).

ALTER TABLE rag.postings RENAME TO postings_before;

-- The entries of a term in a document, 8 bytes for each chunk as int8send() writes them:
-- (id << 24) | (frequency, at most 255, << 16) | length of the chunk in index terms, at most 65,535.
-- A row holds at most 200 entries, since an index entry must stay below 2,700 bytes; then there are several.
CREATE TABLE rag.postings (
    corpus_id   uuid NOT NULL,
    term        text COLLATE "C" NOT NULL,
    document_id uuid NOT NULL,
    entries     bytea NOT NULL CHECK (length(entries) BETWEEN 8 AND 1600)
);
ALTER TABLE rag.postings ALTER COLUMN entries SET STORAGE PLAIN;
-- Rows are only added and deleted; what makes index-only scans possible is the vacuum after additions.
ALTER TABLE rag.postings SET (autovacuum_vacuum_insert_scale_factor = 0.05, autovacuum_vacuum_insert_threshold = 5000);

INSERT INTO rag.postings (corpus_id, term, document_id, entries)
SELECT p.corpus_id, p.term, p.document_id,
       string_agg(int8send((u.id << 24) | (least(u.frequency, 255)::bigint << 16) | least(u.length, 65535)), ''
                  ORDER BY u.number)
FROM rag.postings_before p,
     unnest(p.chunk_ids, p.frequencies, p.lengths) WITH ORDINALITY AS u(id, frequency, length, number)
GROUP BY p.corpus_id, p.document_id, p.term, (u.number - 1) / 200
ORDER BY p.document_id, p.term;

DROP TABLE rag.postings_before;

CREATE INDEX postings_term ON rag.postings (corpus_id, term, document_id) INCLUDE (entries);
CREATE INDEX postings_document ON rag.postings (document_id);

-- Statistics by statement-level triggers, as before.
CREATE OR REPLACE FUNCTION rag.count_postings() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = rag, pg_temp AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO rag.term_statistics AS s (corpus_id, term, chunk_frequency)
        SELECT corpus_id, term, sum(length(entries)) / 8 FROM changed
        GROUP BY corpus_id, term ORDER BY corpus_id, term
        ON CONFLICT (corpus_id, term)
            DO UPDATE SET chunk_frequency = s.chunk_frequency + excluded.chunk_frequency;
    ELSE
        WITH less AS (
            SELECT corpus_id, term, sum(length(entries)) / 8 AS chunks FROM changed GROUP BY corpus_id, term
        ), gone AS (
            DELETE FROM rag.term_statistics s USING less
            WHERE s.corpus_id = less.corpus_id AND s.term = less.term AND s.chunk_frequency <= less.chunks
        )
        UPDATE rag.term_statistics s SET chunk_frequency = s.chunk_frequency - less.chunks FROM less
        WHERE s.corpus_id = less.corpus_id AND s.term = less.term AND s.chunk_frequency > less.chunks;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER postings_added AFTER INSERT ON rag.postings
    REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION rag.count_postings();
CREATE TRIGGER postings_removed AFTER DELETE ON rag.postings
    REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION rag.count_postings();
-- Every document that is added counts its terms here; with room in the page that touches no index.
ALTER TABLE rag.term_statistics SET (fillfactor = 70);

-- A foreign key would be checked for each of a document's thousands of postings. They go with their
-- document by this trigger instead; they cannot come without it, since its chunks, whose foreign key
-- locks the document, are written first in the same transaction.
CREATE FUNCTION rag.delete_postings() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = rag, pg_temp AS $$
BEGIN
    DELETE FROM rag.postings WHERE document_id = ANY(ARRAY(SELECT id FROM gone));
    RETURN NULL;
END $$;
CREATE TRIGGER documents_removed AFTER DELETE ON rag.documents
    REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION rag.delete_postings();

ALTER TABLE rag.postings ENABLE ROW LEVEL SECURITY;
CREATE POLICY postings_read ON rag.postings FOR SELECT USING (corpus_id IN (SELECT c.id FROM rag.corpora c));
CREATE POLICY postings_insert ON rag.postings FOR INSERT
    WITH CHECK (corpus_id IN (SELECT c.id FROM rag.corpora c WHERE rag.may_write(c)));
CREATE POLICY postings_update ON rag.postings FOR UPDATE
    USING (corpus_id IN (SELECT c.id FROM rag.corpora c WHERE rag.may_write(c)))
    WITH CHECK (corpus_id IN (SELECT c.id FROM rag.corpora c WHERE rag.may_write(c)));
CREATE POLICY postings_delete ON rag.postings FOR DELETE
    USING (corpus_id IN (SELECT c.id FROM rag.corpora c WHERE rag.may_write(c)));
GRANT SELECT, INSERT, UPDATE, DELETE ON rag.postings TO {role};

-- An exact scan passes over the rows of data_chunks. Where text, node and places of a chunk do not fit
-- beside its vector, all of them go out of line, not only as many as make the row fit a quarter of a page.
DO $$ BEGIN
    EXECUTE format('ALTER TABLE rag.data_chunks SET (toast_tuple_target = %s)', least({dimension} * 2 + 300, 8160));
END $$;
