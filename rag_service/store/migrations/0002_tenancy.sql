-- Keys, agents, conversations, uploads and the job queue. Placeholder: {role}, the unprivileged role.

-- ---------------------------------------------------------------- who may come in

ALTER TABLE rag.users ADD COLUMN subject text UNIQUE CHECK (subject <> ''); -- `sub` of the user's tokens

CREATE TABLE rag.api_keys (
    id           uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    user_id      uuid NOT NULL REFERENCES rag.users ON DELETE CASCADE,
    name         text NOT NULL CHECK (name <> '' AND length(name) <= 200),
    key_hash     bytea NOT NULL UNIQUE CHECK (length(key_hash) = 32), -- SHA-256 of 256 random bits
    prefix       text NOT NULL,              -- first characters, so that people recognise a key
    scopes       text[] NOT NULL CHECK (scopes <> '{}' AND scopes <@ ARRAY['read', 'write', 'admin']),
    created_at   timestamptz NOT NULL DEFAULT now(),
    last_used_at timestamptz,
    expires_at   timestamptz,
    revoked_at   timestamptz
);
CREATE INDEX api_keys_user ON rag.api_keys (user_id);

-- Before anybody is known no row can be seen; these three tell who it is, and nothing else.
CREATE FUNCTION rag.identify_key(hash bytea)
    RETURNS TABLE (user_id uuid, role text, scopes text[], expires_at timestamptz)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = rag, pg_temp AS $$
#variable_conflict use_column
BEGIN
    UPDATE rag.api_keys k SET last_used_at = now()
    WHERE k.key_hash = hash AND (k.last_used_at IS NULL OR k.last_used_at < now() - interval '1 minute');
    RETURN QUERY
        SELECT u.id, u.role, k.scopes, k.expires_at FROM rag.api_keys k JOIN rag.users u ON u.id = k.user_id
        WHERE k.key_hash = hash AND k.revoked_at IS NULL AND u.active
          AND (k.expires_at IS NULL OR k.expires_at > now());
END $$;

CREATE FUNCTION rag.identify_user(wanted uuid) RETURNS TABLE (user_id uuid, role text)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = rag, pg_temp AS
    $$ SELECT u.id, u.role FROM rag.users u WHERE u.id = wanted AND u.active $$;

CREATE FUNCTION rag.identify_subject(wanted text) RETURNS TABLE (user_id uuid, role text)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = rag, pg_temp AS
    $$ SELECT u.id, u.role FROM rag.users u WHERE u.subject = wanted AND u.active $$;

-- ---------------------------------------------------------------- agents

CREATE TABLE rag.agents (
    id            uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    name          text NOT NULL UNIQUE CHECK (name <> '' AND length(name) <= 200),
    description   text NOT NULL DEFAULT '',
    system_prompt text NOT NULL DEFAULT '',
    provider      text,                      -- NULL: as the settings say; likewise the next three
    model_name    text,
    temperature   double precision CHECK (temperature BETWEEN 0 AND 2),
    max_tokens    integer CHECK (max_tokens >= 16),
    allows_personal_corpus boolean NOT NULL DEFAULT false,
    active        boolean NOT NULL DEFAULT true,
    created_at    timestamptz NOT NULL DEFAULT now(),
    updated_at    timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE rag.agent_corpora (
    agent_id   uuid NOT NULL REFERENCES rag.agents ON DELETE CASCADE,
    corpus_id  uuid NOT NULL REFERENCES rag.corpora ON DELETE CASCADE,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (agent_id, corpus_id)
);
CREATE INDEX agent_corpora_corpus ON rag.agent_corpora (corpus_id);

-- Holds for every writer, the owner of the tables included.
CREATE FUNCTION rag.check_assignment() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = rag, pg_temp AS $$
BEGIN
    IF EXISTS (SELECT FROM rag.corpora WHERE id = NEW.corpus_id AND kind = 'personal')
       AND NOT EXISTS (SELECT FROM rag.agents WHERE id = NEW.agent_id AND allows_personal_corpus) THEN
        RAISE EXCEPTION 'the agent takes no personal corpora'
            USING ERRCODE = 'check_violation', CONSTRAINT = 'agent_takes_no_personal_corpora';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER agent_corpora_check BEFORE INSERT OR UPDATE ON rag.agent_corpora
    FOR EACH ROW EXECUTE FUNCTION rag.check_assignment();

-- Global corpora that the caller reads through an agent. As its owner, past row-level security: the
-- policy on corpora asks this, and a policy must not ask itself.
CREATE FUNCTION rag.assigned_corpora() RETURNS SETOF uuid LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path = rag, pg_temp AS $$
    SELECT ac.corpus_id FROM rag.agent_corpora ac
    JOIN rag.agents a ON a.id = ac.agent_id AND a.active
    JOIN rag.corpora c ON c.id = ac.corpus_id AND c.kind = 'global' AND c.active
    WHERE rag.is_user() $$;

CREATE FUNCTION rag.corpus_kind(wanted uuid) RETURNS text LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path = rag, pg_temp AS
    $$ SELECT kind FROM rag.corpora WHERE id = wanted $$;

CREATE FUNCTION rag.owns_corpus(wanted uuid) RETURNS boolean LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path = rag, pg_temp AS $$
    SELECT rag.is_user() AND EXISTS (
        SELECT FROM rag.corpora WHERE id = wanted AND owner_id = rag.current_user_id()) $$;

DROP POLICY corpora_read ON rag.corpora;
CREATE POLICY corpora_read ON rag.corpora FOR SELECT USING (
    (owner_id = (SELECT rag.current_user_id()) AND (SELECT rag.is_user()))
    OR (kind = 'global' AND ((SELECT rag.is_admin()) OR id IN (SELECT rag.assigned_corpora()))));
-- A deactivated user loses writing with reading.
CREATE OR REPLACE FUNCTION rag.may_write(corpus rag.corpora) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT (corpus.owner_id = rag.current_user_id() AND rag.is_user())
        OR (corpus.kind = 'global' AND rag.is_admin()) $$;

ALTER TABLE rag.agents ENABLE ROW LEVEL SECURITY;
CREATE POLICY agents_read ON rag.agents FOR SELECT
    USING ((active AND (SELECT rag.is_user())) OR (SELECT rag.is_admin()));
CREATE POLICY agents_manage ON rag.agents FOR ALL
    USING ((SELECT rag.is_admin())) WITH CHECK ((SELECT rag.is_admin()));

-- Whoever may see a corpus may see what it is assigned to; admins assign global corpora, owners theirs.
ALTER TABLE rag.agent_corpora ENABLE ROW LEVEL SECURITY;
CREATE POLICY agent_corpora_read ON rag.agent_corpora FOR SELECT
    USING (corpus_id IN (SELECT c.id FROM rag.corpora c));
CREATE POLICY agent_corpora_insert ON rag.agent_corpora FOR INSERT WITH CHECK (
    agent_id IN (SELECT a.id FROM rag.agents a)
    AND (rag.owns_corpus(corpus_id) OR ((SELECT rag.is_admin()) AND rag.corpus_kind(corpus_id) = 'global')));
CREATE POLICY agent_corpora_delete ON rag.agent_corpora FOR DELETE USING (
    rag.owns_corpus(corpus_id) OR ((SELECT rag.is_admin()) AND rag.corpus_kind(corpus_id) = 'global'));

ALTER TABLE rag.api_keys ENABLE ROW LEVEL SECURITY;
CREATE POLICY api_keys_own ON rag.api_keys FOR ALL
    USING ((user_id = (SELECT rag.current_user_id()) AND (SELECT rag.is_user())) OR (SELECT rag.is_admin()))
    WITH CHECK ((user_id = (SELECT rag.current_user_id()) AND (SELECT rag.is_user())) OR (SELECT rag.is_admin()));

-- ---------------------------------------------------------------- conversations

CREATE TABLE rag.projects (
    id         uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    user_id    uuid NOT NULL REFERENCES rag.users ON DELETE CASCADE,
    name       text NOT NULL CHECK (name <> '' AND length(name) <= 200),
    created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX projects_user ON rag.projects (user_id, created_at DESC);

CREATE TABLE rag.conversations (
    id         uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    user_id    uuid NOT NULL REFERENCES rag.users ON DELETE CASCADE,
    project_id uuid REFERENCES rag.projects ON DELETE SET NULL,
    agent_id   uuid REFERENCES rag.agents ON DELETE SET NULL,
    title      text NOT NULL DEFAULT '',
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX conversations_user ON rag.conversations (user_id, updated_at DESC);

CREATE TABLE rag.messages (
    id              uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    conversation_id uuid NOT NULL REFERENCES rag.conversations ON DELETE CASCADE,
    user_id         uuid NOT NULL REFERENCES rag.users ON DELETE CASCADE,
    position        bigint GENERATED ALWAYS AS IDENTITY,
    role            text NOT NULL CHECK (role IN ('user', 'assistant')),
    content         text NOT NULL,
    citations       jsonb NOT NULL DEFAULT '[]',
    answer_id       uuid,                    -- of an assistant's message; its record may be gone
    created_at      timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX messages_conversation ON rag.messages (conversation_id, position);

-- Question and answer are copied when feedback is given: reviewers see these, never the conversation.
CREATE TABLE rag.feedback (
    answer_id  uuid NOT NULL REFERENCES rag.answers ON DELETE CASCADE,
    user_id    uuid NOT NULL REFERENCES rag.users ON DELETE CASCADE,
    thumbs     text NOT NULL CHECK (thumbs IN ('up', 'down')),
    comment    text NOT NULL DEFAULT '' CHECK (length(comment) <= 4000),
    question   text NOT NULL DEFAULT '',
    answer     text NOT NULL DEFAULT '',
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (answer_id, user_id)
);
CREATE INDEX feedback_review ON rag.feedback (thumbs, updated_at DESC);

-- Foreign keys see past row-level security, so that each reference is checked to be the user's own.
ALTER TABLE rag.projects ENABLE ROW LEVEL SECURITY;
CREATE POLICY projects_own ON rag.projects FOR ALL
    USING (user_id = (SELECT rag.current_user_id()) AND (SELECT rag.is_user()))
    WITH CHECK (user_id = (SELECT rag.current_user_id()) AND (SELECT rag.is_user()));
ALTER TABLE rag.conversations ENABLE ROW LEVEL SECURITY;
CREATE POLICY conversations_own ON rag.conversations FOR ALL
    USING (user_id = (SELECT rag.current_user_id()) AND (SELECT rag.is_user()))
    WITH CHECK (user_id = (SELECT rag.current_user_id()) AND (SELECT rag.is_user())
        AND (project_id IS NULL OR project_id IN (SELECT p.id FROM rag.projects p)));
ALTER TABLE rag.messages ENABLE ROW LEVEL SECURITY;
CREATE POLICY messages_own ON rag.messages FOR ALL
    USING (user_id = (SELECT rag.current_user_id()) AND (SELECT rag.is_user()))
    WITH CHECK (user_id = (SELECT rag.current_user_id()) AND (SELECT rag.is_user())
        AND conversation_id IN (SELECT c.id FROM rag.conversations c));
ALTER TABLE rag.feedback ENABLE ROW LEVEL SECURITY;
CREATE POLICY feedback_read ON rag.feedback FOR SELECT
    USING ((user_id = (SELECT rag.current_user_id()) AND (SELECT rag.is_user())) OR (SELECT rag.is_admin()));
CREATE POLICY feedback_insert ON rag.feedback FOR INSERT
    WITH CHECK (user_id = (SELECT rag.current_user_id()) AND answer_id IN (SELECT a.id FROM rag.answers a));
CREATE POLICY feedback_update ON rag.feedback FOR UPDATE
    USING (user_id = (SELECT rag.current_user_id()))
    WITH CHECK (user_id = (SELECT rag.current_user_id()) AND answer_id IN (SELECT a.id FROM rag.answers a));
CREATE POLICY feedback_delete ON rag.feedback FOR DELETE USING (user_id = (SELECT rag.current_user_id()));
DROP POLICY answers_own ON rag.answers;
CREATE POLICY answers_own ON rag.answers FOR ALL
    USING (user_id = (SELECT rag.current_user_id()) AND (SELECT rag.is_user()))
    WITH CHECK (user_id = (SELECT rag.current_user_id()) AND (SELECT rag.is_user()));

-- ---------------------------------------------------------------- originals and uploads

CREATE TABLE rag.originals (
    document_id  uuid NOT NULL REFERENCES rag.documents ON DELETE CASCADE,
    content_hash text NOT NULL,              -- SHA-256 of the bytes, hex
    corpus_id    uuid NOT NULL REFERENCES rag.corpora ON DELETE CASCADE,
    data         bytea,
    location     text,                       -- where the bytes are, when they are not here
    created_at   timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (document_id, content_hash),
    CHECK ((data IS NULL) <> (location IS NULL))
);
ALTER TABLE rag.originals ALTER COLUMN data SET STORAGE EXTERNAL; -- office files and PDFs are compressed already

-- Files whose row is gone, whatever deleted it; the worker removes them.
CREATE TABLE rag.discarded_originals (
    location     text PRIMARY KEY,
    discarded_at timestamptz NOT NULL DEFAULT now()
);
CREATE FUNCTION rag.discard_original() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = rag, pg_temp AS $$
BEGIN
    INSERT INTO rag.discarded_originals (location) SELECT location FROM gone WHERE location IS NOT NULL
    ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;
CREATE TRIGGER originals_removed AFTER DELETE ON rag.originals
    REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION rag.discard_original();

-- One row for each accepted upload: what the job works from and what its uploader sees.
CREATE TABLE rag.uploads (
    id           uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    document_id  uuid NOT NULL REFERENCES rag.documents ON DELETE CASCADE,
    corpus_id    uuid NOT NULL REFERENCES rag.corpora ON DELETE CASCADE,
    user_id      uuid REFERENCES rag.users ON DELETE SET NULL, -- who uploaded; the job acts as this user
    content_hash text NOT NULL,
    file_name    text NOT NULL,
    title        text,
    source       text,
    tags         text[] NOT NULL DEFAULT '{}',
    fields       jsonb NOT NULL DEFAULT '{}',
    metadata     jsonb NOT NULL DEFAULT '{}',
    size_bytes   bigint NOT NULL,
    expires_at   timestamptz,
    status       text NOT NULL DEFAULT 'pending'
        CHECK (status IN ('pending', 'parsing', 'chunking', 'embedding', 'storing', 'indexed', 'failed')),
    code         text,                       -- stable code of the error that failed or delays it
    reason       text,                       -- the same for people
    done         integer NOT NULL DEFAULT 0, -- chunks embedded
    total        integer,                    -- chunks in all; NULL until they are cut
    attempts     integer NOT NULL DEFAULT 0,
    claim        bigint NOT NULL DEFAULT 0,  -- fencing: only the holder of the newest claim may write
    created_at   timestamptz NOT NULL DEFAULT now(),
    updated_at   timestamptz NOT NULL DEFAULT now()
);
CREATE UNIQUE INDEX uploads_open ON rag.uploads (document_id) WHERE status NOT IN ('indexed', 'failed');
CREATE INDEX uploads_document ON rag.uploads (document_id, created_at DESC);
CREATE INDEX uploads_corpus ON rag.uploads (corpus_id, created_at DESC);

DO $$
DECLARE
    writable constant text := '(corpus_id IN (SELECT c.id FROM rag.corpora c WHERE rag.may_write(c)))';
BEGIN
    -- Readers of a corpus may open its originals; how its uploads fare concerns those who write to it.
    ALTER TABLE rag.originals ENABLE ROW LEVEL SECURITY;
    CREATE POLICY originals_read ON rag.originals FOR SELECT USING (corpus_id IN (SELECT c.id FROM rag.corpora c));
    EXECUTE 'CREATE POLICY originals_insert ON rag.originals FOR INSERT WITH CHECK ' || writable;
    EXECUTE 'CREATE POLICY originals_update ON rag.originals FOR UPDATE USING ' || writable;
    EXECUTE 'CREATE POLICY originals_delete ON rag.originals FOR DELETE USING ' || writable;
    ALTER TABLE rag.uploads ENABLE ROW LEVEL SECURITY;
    EXECUTE 'CREATE POLICY uploads_own ON rag.uploads FOR ALL USING ' || writable || ' WITH CHECK ' || writable;
END $$;
ALTER TABLE rag.discarded_originals ENABLE ROW LEVEL SECURITY; -- no policy: through the functions alone

-- ---------------------------------------------------------------- upkeep, on behalf of nobody
-- These act past row-level security, take no ids from the caller that could widen what they do, and
-- give back ids and counts only.

CREATE FUNCTION rag.lost_uploads(quiet interval) RETURNS TABLE (upload_id uuid, user_id uuid)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = rag, pg_temp AS $$
    SELECT u.id, u.user_id FROM rag.uploads u
    WHERE u.status NOT IN ('indexed', 'failed') AND u.user_id IS NOT NULL AND u.updated_at < now() - quiet
      AND NOT EXISTS (SELECT FROM rag.procrastinate_jobs j
                      WHERE j.status IN ('todo', 'doing') AND j.args ->> 'upload_id' = u.id::text)
    LIMIT 1000 $$;

CREATE FUNCTION rag.fail_unwritable_uploads() RETURNS bigint
    LANGUAGE sql SECURITY DEFINER SET search_path = rag, pg_temp AS $$
    WITH failed AS (
        UPDATE rag.uploads u SET status = 'failed', code = 'not_permitted', claim = claim + 1, updated_at = now(),
               reason = 'The account that uploaded this may no longer write here. Upload it again.'
        FROM rag.corpora c
        WHERE c.id = u.corpus_id AND u.status NOT IN ('indexed', 'failed')
          AND NOT EXISTS (SELECT FROM rag.users o WHERE o.id = u.user_id AND o.active
                          AND (o.id = c.owner_id OR (c.kind = 'global' AND o.role = 'admin')))
        RETURNING 1)
    SELECT count(*) FROM failed $$;

-- Deletes what nobody can see any more. The lock is the one that writers of a corpus take.
CREATE FUNCTION rag.purge_expired(most integer) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = rag, pg_temp AS $$
DECLARE
    corpus uuid;
    purged bigint := 0;
    gone bigint;
BEGIN
    FOR corpus IN SELECT DISTINCT corpus_id FROM rag.documents WHERE expires_at <= now() ORDER BY corpus_id LOOP
        PERFORM pg_advisory_xact_lock(hashtextextended(corpus::text, 0));
        DELETE FROM rag.documents WHERE id IN (
            SELECT id FROM rag.documents WHERE corpus_id = corpus AND expires_at <= now() LIMIT most - purged);
        GET DIAGNOSTICS gone = ROW_COUNT;
        purged := purged + gone;
        EXIT WHEN purged >= most;
    END LOOP;
    RETURN purged;
END $$;

CREATE FUNCTION rag.list_discarded_originals(most integer) RETURNS SETOF text
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = rag, pg_temp AS $$
    SELECT location FROM rag.discarded_originals ORDER BY discarded_at LIMIT most $$;

CREATE FUNCTION rag.forget_discarded_originals(removed text[]) RETURNS void
    LANGUAGE sql SECURITY DEFINER SET search_path = rag, pg_temp AS
    $$ DELETE FROM rag.discarded_originals WHERE location = ANY(removed) $$;

-- ---------------------------------------------------------------- the job queue
-- Its tables hold ids alone. They show to connections that declare themselves workers; a request
-- can enqueue, through the function, and see nothing.

DO $$
DECLARE
    relation text;
    declared constant text := '((SELECT current_setting(''rag.worker'', true)) = ''on'')';
BEGIN
    FOREACH relation IN ARRAY ARRAY['procrastinate_jobs', 'procrastinate_workers', 'procrastinate_events',
                                    'procrastinate_periodic_defers'] LOOP
        EXECUTE format('ALTER TABLE rag.%I ENABLE ROW LEVEL SECURITY', relation);
        EXECUTE format('CREATE POLICY %I ON rag.%I FOR ALL USING %s WITH CHECK %s',
                       relation || '_worker', relation, declared, declared);
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON rag.%I TO {role}', relation);
    END LOOP;
END $$;
DO $$
DECLARE
    function regprocedure;
BEGIN
    -- They name each other without a schema; triggers fire on anybody's connection.
    FOR function IN SELECT p.oid::regprocedure FROM pg_proc p
        WHERE p.pronamespace = 'rag'::regnamespace AND p.proname LIKE 'procrastinate%' LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = rag, pg_temp', function);
    END LOOP;
END $$;
ALTER FUNCTION rag.procrastinate_defer_jobs_v1(rag.procrastinate_job_to_defer_v1[]) SECURITY DEFINER;
REVOKE EXECUTE ON FUNCTION rag.procrastinate_defer_jobs_v1(rag.procrastinate_job_to_defer_v1[]) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION rag.procrastinate_defer_jobs_v1(rag.procrastinate_job_to_defer_v1[]) TO {role};
GRANT USAGE ON SEQUENCE rag.procrastinate_jobs_id_seq, rag.procrastinate_events_id_seq,
    rag.procrastinate_periodic_defers_id_seq TO {role};
CREATE INDEX procrastinate_jobs_upload ON rag.procrastinate_jobs ((args ->> 'upload_id'));

-- ---------------------------------------------------------------- the service's role

GRANT SELECT, INSERT, UPDATE, DELETE ON
    rag.agents, rag.projects, rag.conversations, rag.messages, rag.feedback, rag.originals, rag.uploads TO {role};
GRANT SELECT, INSERT, DELETE ON rag.agent_corpora TO {role};
-- Never the hash: it is compared inside rag.identify_key alone.
GRANT SELECT (id, user_id, name, prefix, scopes, created_at, last_used_at, expires_at, revoked_at),
    INSERT (user_id, name, key_hash, prefix, scopes, expires_at), UPDATE (revoked_at), DELETE ON rag.api_keys TO {role};

DO $$
DECLARE
    function regprocedure;
BEGIN
    FOR function IN SELECT p.oid::regprocedure FROM pg_proc p
        WHERE p.pronamespace = 'rag'::regnamespace AND p.proname IN (
            'identify_key', 'identify_user', 'identify_subject', 'assigned_corpora', 'corpus_kind', 'owns_corpus',
            'lost_uploads', 'fail_unwritable_uploads', 'purge_expired', 'list_discarded_originals',
            'forget_discarded_originals') LOOP
        EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', function);
        EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO {role}', function);
    END LOOP;
END $$;
