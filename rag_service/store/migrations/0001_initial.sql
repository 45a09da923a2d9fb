-- Users, corpora, documents, chunks and the lexical index, with row-level security from the start.
-- Placeholders: {role} the unprivileged role (an identifier, quoted), {dimension} of the vectors.

CREATE SCHEMA IF NOT EXISTS rag;
CREATE EXTENSION IF NOT EXISTS vector WITH SCHEMA public;

-- ---------------------------------------------------------------- identity

CREATE TABLE rag.users (
    id          uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    name        text NOT NULL UNIQUE CHECK (name <> '' AND length(name) <= 200),
    role        text NOT NULL CHECK (role IN ('admin', 'user')),
    active      boolean NOT NULL DEFAULT true,
    created_at  timestamptz NOT NULL DEFAULT now()
);

-- Outside a transaction that set it, the setting reads '' (not NULL) on a pooled connection.
CREATE FUNCTION rag.current_user_id() RETURNS uuid LANGUAGE sql STABLE PARALLEL SAFE AS
    $$ SELECT nullif(current_setting('rag.user_id', true), '')::uuid $$;

CREATE FUNCTION rag.is_admin() RETURNS boolean LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path = rag, pg_temp AS
    $$ SELECT EXISTS (SELECT FROM rag.users
                      WHERE id = rag.current_user_id() AND role = 'admin' AND active) $$;

CREATE FUNCTION rag.is_user() RETURNS boolean LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path = rag, pg_temp AS
    $$ SELECT EXISTS (SELECT FROM rag.users WHERE id = rag.current_user_id() AND active) $$;

-- ---------------------------------------------------------------- corpora and documents

CREATE TABLE rag.corpora (
    id          uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    name        text NOT NULL CHECK (name <> '' AND length(name) <= 200),
    kind        text NOT NULL CHECK (kind IN ('global', 'personal')),
    owner_id    uuid REFERENCES rag.users ON DELETE CASCADE,
    index_name  text NOT NULL,               -- the definition below indices/ that rules it
    active      boolean NOT NULL DEFAULT true,
    ttl_seconds integer CHECK (ttl_seconds > 0),
    created_at  timestamptz NOT NULL DEFAULT now(),
    updated_at  timestamptz NOT NULL DEFAULT now(),
    CHECK ((kind = 'personal') = (owner_id IS NOT NULL))
);
CREATE UNIQUE INDEX corpora_name ON rag.corpora (name, owner_id) NULLS NOT DISTINCT;
CREATE INDEX corpora_owner ON rag.corpora (owner_id);

CREATE TABLE rag.documents (
    id           uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    corpus_id    uuid NOT NULL REFERENCES rag.corpora ON DELETE CASCADE,
    name         text NOT NULL,              -- unique in its corpus: a relative path or an external id
    title        text NOT NULL,
    file_name    text,
    -- stored, since lower() is not leakproof and an expression index would lie idle under row-level security
    file_key     text GENERATED ALWAYS AS (lower(file_name)) STORED,
    file_stem    text GENERATED ALWAYS AS (lower(regexp_replace(file_name, '[.][^.]*$', ''))) STORED,
    source       text,
    tags         text[] NOT NULL DEFAULT '{}',
    language     text,
    media_type   text,
    content_hash text NOT NULL,              -- SHA-256 of the original bytes
    fingerprint  text NOT NULL,              -- of the ingest settings that made its chunks
    fields       jsonb NOT NULL DEFAULT '{}',-- declared filter fields
    metadata     jsonb NOT NULL DEFAULT '{}',-- everything else the document says of itself
    territory    text,                       -- NULL: valid everywhere
    chunk_count  integer NOT NULL DEFAULT 0,
    size_bytes   bigint NOT NULL DEFAULT 0,
    expires_at   timestamptz,
    created_at   timestamptz NOT NULL DEFAULT now(),
    updated_at   timestamptz NOT NULL DEFAULT now(),
    UNIQUE (corpus_id, name)
);
CREATE INDEX documents_hash ON rag.documents (corpus_id, content_hash);
CREATE INDEX documents_file_key ON rag.documents (corpus_id, file_key);
CREATE INDEX documents_file_stem ON rag.documents (corpus_id, file_stem);
CREATE INDEX documents_expiry ON rag.documents (corpus_id, expires_at) WHERE expires_at IS NOT NULL;

-- The text that chunks are cut from and citation offsets count in; apart, so that documents stay narrow.
CREATE TABLE rag.document_texts (
    document_id uuid PRIMARY KEY REFERENCES rag.documents ON DELETE CASCADE,
    corpus_id   uuid NOT NULL REFERENCES rag.corpora ON DELETE CASCADE,
    text        text NOT NULL
);

-- ---------------------------------------------------------------- chunks: PGVectorStore's table

CREATE TABLE rag.data_chunks (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    text        varchar NOT NULL,
    metadata_   jsonb,
    node_id     varchar NOT NULL UNIQUE,
    embedding   public.halfvec({dimension}) NOT NULL,
    corpus_id   uuid NOT NULL REFERENCES rag.corpora ON DELETE CASCADE,
    document_id uuid NOT NULL REFERENCES rag.documents ON DELETE CASCADE,
    chunk_index integer NOT NULL,
    chunk_type  text,
    char_start  integer NOT NULL,
    char_end    integer NOT NULL,
    spans       jsonb NOT NULL DEFAULT '[]', -- [start, end, location] in document offsets
    length      integer NOT NULL,            -- in index terms: what BM25 normalises by
    UNIQUE (document_id, chunk_index)
);
-- pgvector's own choice moves vectors out of rows above 2 kB, which nearly all rows with their text are:
-- an exact scan then fetches each vector by an index (7,200 rows: 30 ms and 15,101 buffers). The text goes instead.
ALTER TABLE rag.data_chunks ALTER COLUMN embedding SET STORAGE MAIN;
CREATE INDEX data_chunks_corpus ON rag.data_chunks (corpus_id);
CREATE INDEX data_chunks_embedding ON rag.data_chunks USING hnsw (embedding public.halfvec_cosine_ops)
    WITH (m = 16, ef_construction = 100);

-- ---------------------------------------------------------------- lexical index

-- One row per corpus, term and document; the arrays run in parallel, one element per chunk.
CREATE TABLE rag.postings (
    corpus_id   uuid NOT NULL,
    term        text COLLATE "C" NOT NULL,
    document_id uuid NOT NULL REFERENCES rag.documents ON DELETE CASCADE,
    chunk_ids   bigint[] NOT NULL,
    frequencies smallint[] NOT NULL,
    lengths     integer[] NOT NULL,
    PRIMARY KEY (corpus_id, term, document_id)
);
CREATE INDEX postings_document ON rag.postings (document_id);

CREATE TABLE rag.term_statistics (
    corpus_id       uuid NOT NULL REFERENCES rag.corpora ON DELETE CASCADE,
    term            text COLLATE "C" NOT NULL,
    chunk_frequency integer NOT NULL,        -- chunks of the corpus that hold the term
    PRIMARY KEY (corpus_id, term)
);

CREATE TABLE rag.corpus_statistics (
    corpus_id   uuid PRIMARY KEY REFERENCES rag.corpora ON DELETE CASCADE,
    chunk_count bigint NOT NULL DEFAULT 0,
    term_count  bigint NOT NULL DEFAULT 0    -- sum of the chunks' lengths
);

-- Statistics follow the rows by statement-level triggers, so that they are exact whatever deletes:
-- the application, a cascade from a corpus or a user, or an administrator's SQL.
CREATE FUNCTION rag.count_postings() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = rag, pg_temp AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO rag.term_statistics AS s (corpus_id, term, chunk_frequency)
        SELECT corpus_id, term, sum(cardinality(chunk_ids)) FROM changed
        GROUP BY corpus_id, term ORDER BY corpus_id, term
        ON CONFLICT (corpus_id, term)
            DO UPDATE SET chunk_frequency = s.chunk_frequency + excluded.chunk_frequency;
    ELSE
        WITH less AS (
            SELECT corpus_id, term, sum(cardinality(chunk_ids)) AS chunks FROM changed GROUP BY corpus_id, term
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

CREATE FUNCTION rag.count_chunks() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = rag, pg_temp AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO rag.corpus_statistics AS s (corpus_id, chunk_count, term_count)
        SELECT corpus_id, count(*), sum(length) FROM changed GROUP BY corpus_id ORDER BY corpus_id
        ON CONFLICT (corpus_id) DO UPDATE SET chunk_count = s.chunk_count + excluded.chunk_count,
                                              term_count = s.term_count + excluded.term_count;
    ELSE
        UPDATE rag.corpus_statistics s
        SET chunk_count = s.chunk_count - less.chunks, term_count = s.term_count - less.terms
        FROM (SELECT corpus_id, count(*) AS chunks, sum(length) AS terms FROM changed GROUP BY corpus_id) less
        WHERE s.corpus_id = less.corpus_id;
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER chunks_added AFTER INSERT ON rag.data_chunks
    REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION rag.count_chunks();
CREATE TRIGGER chunks_removed AFTER DELETE ON rag.data_chunks
    REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION rag.count_chunks();

-- ---------------------------------------------------------------- answers

-- The provenance record of an answer; belongs to who asked.
CREATE TABLE rag.answers (
    id         uuid PRIMARY KEY,
    user_id    uuid NOT NULL REFERENCES rag.users ON DELETE CASCADE,
    created_at timestamptz NOT NULL DEFAULT now(),
    record     jsonb NOT NULL
);
CREATE INDEX answers_user ON rag.answers (user_id, created_at DESC);

-- ---------------------------------------------------------------- row-level security
-- Visibility of a corpus is decided once, in its own policy; every other table asks for it, and the
-- sub-select is itself subject to that policy. No identity means no rows.

ALTER TABLE rag.users ENABLE ROW LEVEL SECURITY;
CREATE POLICY users_read ON rag.users FOR SELECT
    USING (id = (SELECT rag.current_user_id()) OR (SELECT rag.is_admin()));
CREATE POLICY users_manage ON rag.users FOR ALL
    USING ((SELECT rag.is_admin())) WITH CHECK ((SELECT rag.is_admin()));

ALTER TABLE rag.corpora ENABLE ROW LEVEL SECURITY;
CREATE POLICY corpora_read ON rag.corpora FOR SELECT
    USING (owner_id = (SELECT rag.current_user_id()) OR (kind = 'global' AND (SELECT rag.is_user())));
CREATE POLICY corpora_insert ON rag.corpora FOR INSERT
    WITH CHECK ((kind = 'personal' AND owner_id = (SELECT rag.current_user_id()) AND (SELECT rag.is_user()))
                OR (kind = 'global' AND (SELECT rag.is_admin())));
CREATE POLICY corpora_update ON rag.corpora FOR UPDATE
    USING (owner_id = (SELECT rag.current_user_id()) OR (kind = 'global' AND (SELECT rag.is_admin())))
    WITH CHECK (owner_id = (SELECT rag.current_user_id()) OR (kind = 'global' AND (SELECT rag.is_admin())));
CREATE POLICY corpora_delete ON rag.corpora FOR DELETE
    USING (owner_id = (SELECT rag.current_user_id()) OR (kind = 'global' AND (SELECT rag.is_admin())));

CREATE FUNCTION rag.may_write(corpus rag.corpora) RETURNS boolean LANGUAGE sql STABLE AS
    $$ SELECT corpus.owner_id = rag.current_user_id() OR (corpus.kind = 'global' AND rag.is_admin()) $$;

DO $$
DECLARE
    relation text;
BEGIN
    FOREACH relation IN ARRAY ARRAY['documents', 'document_texts', 'data_chunks', 'postings'] LOOP
        EXECUTE format('ALTER TABLE rag.%I ENABLE ROW LEVEL SECURITY', relation);
        EXECUTE format('CREATE POLICY %I ON rag.%I FOR SELECT
            USING (corpus_id IN (SELECT c.id FROM rag.corpora c))', relation || '_read', relation);
        EXECUTE format('CREATE POLICY %I ON rag.%I FOR INSERT
            WITH CHECK (corpus_id IN (SELECT c.id FROM rag.corpora c WHERE rag.may_write(c)))',
            relation || '_insert', relation);
        EXECUTE format('CREATE POLICY %I ON rag.%I FOR UPDATE
            USING (corpus_id IN (SELECT c.id FROM rag.corpora c WHERE rag.may_write(c)))
            WITH CHECK (corpus_id IN (SELECT c.id FROM rag.corpora c WHERE rag.may_write(c)))',
            relation || '_update', relation);
        EXECUTE format('CREATE POLICY %I ON rag.%I FOR DELETE
            USING (corpus_id IN (SELECT c.id FROM rag.corpora c WHERE rag.may_write(c)))',
            relation || '_delete', relation);
    END LOOP;
    -- Written by the triggers alone.
    FOREACH relation IN ARRAY ARRAY['term_statistics', 'corpus_statistics'] LOOP
        EXECUTE format('ALTER TABLE rag.%I ENABLE ROW LEVEL SECURITY', relation);
        EXECUTE format('CREATE POLICY %I ON rag.%I FOR SELECT
            USING (corpus_id IN (SELECT c.id FROM rag.corpora c))', relation || '_read', relation);
    END LOOP;
END $$;

ALTER TABLE rag.answers ENABLE ROW LEVEL SECURITY;
CREATE POLICY answers_own ON rag.answers FOR ALL
    USING (user_id = (SELECT rag.current_user_id())) WITH CHECK (user_id = (SELECT rag.current_user_id()));

-- ---------------------------------------------------------------- the service's role

GRANT USAGE ON SCHEMA rag TO {role};
GRANT SELECT, INSERT, UPDATE, DELETE ON
    rag.users, rag.corpora, rag.documents, rag.document_texts, rag.data_chunks, rag.postings, rag.answers
    TO {role};
GRANT SELECT ON rag.term_statistics, rag.corpus_statistics TO {role};
GRANT USAGE ON SEQUENCE rag.data_chunks_id_seq TO {role};
GRANT SELECT ON public.schema_version TO {role};
