-- A text that the embedding model cannot embed is stored without a vector, and found by its words.
-- Its document is stale, so that `rag-service reingest` tries again. Beside that, the functions are those of 0008.

ALTER TABLE rag.data_chunks ALTER COLUMN embedding DROP NOT NULL;
CREATE INDEX data_chunks_without_vector ON rag.data_chunks (document_id) WHERE embedding IS NULL;

CREATE OR REPLACE FUNCTION rag.count_stale(fingerprints jsonb)
    RETURNS TABLE (index_name text, documents bigint, chunks bigint)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = rag, pg_temp AS $$
    SELECT c.index_name, count(*), sum(d.chunk_count)::bigint
    FROM rag.documents d JOIN rag.corpora c ON c.id = d.corpus_id
    WHERE c.active AND d.fingerprint <> '' AND fingerprints ? c.index_name
      AND (d.fingerprint <> fingerprints ->> c.index_name
           OR d.id IN (SELECT x.document_id FROM rag.data_chunks x WHERE x.embedding IS NULL))
      AND (d.expires_at IS NULL OR d.expires_at > now())
    GROUP BY c.index_name ORDER BY c.index_name $$;

CREATE OR REPLACE FUNCTION rag.list_stale(fingerprints jsonb, after uuid, most integer)
    RETURNS TABLE (document_id uuid, user_id uuid)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = rag, pg_temp AS $$
    SELECT d.id, writer.id
    FROM rag.documents d JOIN rag.corpora c ON c.id = d.corpus_id
    LEFT JOIN LATERAL (SELECT * FROM rag.uploads n WHERE n.document_id = d.id
                       ORDER BY n.created_at DESC, n.id LIMIT 1) u ON true
    CROSS JOIN LATERAL (SELECT o.id FROM rag.users o
                        WHERE o.active AND (o.id = c.owner_id OR (c.kind = 'global' AND o.role = 'admin'))
                        ORDER BY (o.id = u.user_id) IS TRUE DESC, o.created_at, o.id LIMIT 1) writer
    WHERE d.id > after AND c.active AND d.fingerprint <> '' AND fingerprints ? c.index_name
      AND (d.fingerprint <> fingerprints ->> c.index_name
           OR d.id IN (SELECT x.document_id FROM rag.data_chunks x WHERE x.embedding IS NULL))
      AND (d.expires_at IS NULL OR d.expires_at > now())
      AND (u.id IS NULL OR (u.content_hash = d.content_hash AND u.status IN ('indexed', 'failed')))
      AND EXISTS (SELECT FROM rag.originals o WHERE o.document_id = d.id AND o.content_hash = d.content_hash)
    ORDER BY d.id LIMIT most $$;
