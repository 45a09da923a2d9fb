-- A cache of passage embeddings. Placeholder: {role}, the unprivileged role.
-- UNLOGGED: it costs no WAL, is empty after a crash of the server, and absent on read replicas.

CREATE UNLOGGED TABLE rag.embedding_cache (
    key        bytea PRIMARY KEY,            -- SHA-256 over role, model, dimension, tenant and content
    tenant_id  uuid REFERENCES rag.users ON DELETE CASCADE, -- whose personal content; NULL: of a global corpus
    vector     bytea NOT NULL,               -- float32, little-endian
    expires_at timestamptz NOT NULL
);
ALTER TABLE rag.embedding_cache ALTER COLUMN vector SET STORAGE EXTERNAL; -- does not compress
CREATE INDEX embedding_cache_expiry ON rag.embedding_cache (expires_at);
CREATE INDEX embedding_cache_tenant ON rag.embedding_cache (tenant_id) WHERE tenant_id IS NOT NULL;

-- Shared rows are written by those who may write to global corpora, so that nobody else can plant a
-- vector under a text that others will store.
ALTER TABLE rag.embedding_cache ENABLE ROW LEVEL SECURITY;
CREATE POLICY embedding_cache_read ON rag.embedding_cache FOR SELECT
    USING ((tenant_id = (SELECT rag.current_user_id()) OR tenant_id IS NULL) AND (SELECT rag.is_user()));
CREATE POLICY embedding_cache_insert ON rag.embedding_cache FOR INSERT
    WITH CHECK ((tenant_id = (SELECT rag.current_user_id()) AND (SELECT rag.is_user()))
                OR (tenant_id IS NULL AND (SELECT rag.is_admin())));
CREATE POLICY embedding_cache_update ON rag.embedding_cache FOR UPDATE
    USING ((tenant_id = (SELECT rag.current_user_id()) AND (SELECT rag.is_user()))
           OR (tenant_id IS NULL AND (SELECT rag.is_admin())))
    WITH CHECK ((tenant_id = (SELECT rag.current_user_id()) AND (SELECT rag.is_user()))
                OR (tenant_id IS NULL AND (SELECT rag.is_admin())));

-- On behalf of nobody: removes what no reader is given any more, the longest expired first.
CREATE FUNCTION rag.purge_embedding_cache(most integer) RETURNS bigint
    LANGUAGE sql SECURITY DEFINER SET search_path = rag, pg_temp AS $$
    WITH gone AS (
        DELETE FROM rag.embedding_cache WHERE key IN (
            SELECT key FROM rag.embedding_cache WHERE expires_at <= now() ORDER BY expires_at LIMIT most
            FOR UPDATE SKIP LOCKED)
        RETURNING 1)
    SELECT count(*) FROM gone $$;
REVOKE EXECUTE ON FUNCTION rag.purge_embedding_cache(integer) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION rag.purge_embedding_cache(integer) TO {role};

GRANT SELECT, INSERT, UPDATE ON rag.embedding_cache TO {role};
