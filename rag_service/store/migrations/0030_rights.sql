-- Rows point only to what belongs to them; keys end with the key that made them; personal corpora are not shared.
-- Placeholder: {role}, the unprivileged role.

-- ---------------------------------------------------------------- ids in rows
-- Foreign keys see past row-level security: a row in one's own corpus could name a document or table of somebody else.

DO $$
DECLARE
    relation text;
    belongs text;
BEGIN
    FOREACH relation IN ARRAY ARRAY['document_texts', 'data_chunks', 'postings', 'originals', 'tables', 'uploads', 'synced_files',
                                    'table_rows', 'table_texts'] LOOP
        belongs := CASE WHEN relation IN ('table_rows', 'table_texts')
            THEN format('EXISTS (SELECT FROM rag.tables t WHERE t.id = %I.table_id AND t.corpus_id = %1$I.corpus_id)', relation)
            ELSE format('EXISTS (SELECT FROM rag.documents d WHERE d.id = %I.document_id AND d.corpus_id = %1$I.corpus_id)', relation)
            END;
        EXECUTE format('CREATE POLICY %I ON rag.%I AS RESTRICTIVE FOR INSERT WITH CHECK (%s)',
                       relation || '_belongs', relation, belongs);
        EXECUTE format('CREATE POLICY %I ON rag.%I AS RESTRICTIVE FOR UPDATE USING (true) WITH CHECK (%s)',
                       relation || '_stays', relation, belongs);
    END LOOP;
END $$;

-- A file of an original is one that was written for it.
CREATE FUNCTION rag.is_place_of(location text, corpus uuid, document uuid, content_hash text) RETURNS boolean
    LANGUAGE sql IMMUTABLE AS $$
    SELECT location IS NULL OR (left(location, length(location) - 8) = format('%s/%s/%s-', corpus, document, content_hash)
                                AND right(location, 8) ~ '^[0-9a-f]{8}$') $$;
CREATE POLICY originals_place ON rag.originals AS RESTRICTIVE FOR INSERT
    WITH CHECK (rag.is_place_of(location, corpus_id, document_id, content_hash));
CREATE POLICY originals_place_stays ON rag.originals AS RESTRICTIVE FOR UPDATE USING (true)
    WITH CHECK (rag.is_place_of(location, corpus_id, document_id, content_hash));

-- An upload is worked on as the user who made it.
CREATE POLICY uploads_as_oneself ON rag.uploads AS RESTRICTIVE FOR INSERT WITH CHECK (user_id = (SELECT rag.current_user_id()));

-- The record of an answer may be gone; it is never another user's.
CREATE FUNCTION rag.is_answer_of_another(answer uuid) RETURNS boolean LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path = rag, pg_temp AS $$
    SELECT EXISTS (SELECT FROM rag.answers a WHERE a.id = answer AND a.user_id <> rag.current_user_id()) $$;
CREATE POLICY messages_of_own_answers ON rag.messages AS RESTRICTIVE FOR INSERT WITH CHECK (
    (answer_id IS NULL OR NOT rag.is_answer_of_another(answer_id))
    AND (agent_id IS NULL OR agent_id IN (SELECT a.id FROM rag.agents a)));
CREATE POLICY messages_answers_stay ON rag.messages AS RESTRICTIVE FOR UPDATE USING (true)
    WITH CHECK (answer_id IS NULL OR NOT rag.is_answer_of_another(answer_id));
CREATE POLICY conversations_agent ON rag.conversations AS RESTRICTIVE FOR INSERT
    WITH CHECK (agent_id IS NULL OR agent_id IN (SELECT a.id FROM rag.agents a));

-- ---------------------------------------------------------------- names of those who share
-- As the policies on conversations and corpora: the function sees past them.
CREATE OR REPLACE FUNCTION rag.sharer(conversation uuid) RETURNS text LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path = rag, pg_temp AS $$
    SELECT u.name FROM rag.conversations c JOIN rag.users u ON u.id = c.user_id AND u.active
    WHERE c.id = conversation AND c.shared_at IS NOT NULL AND c.user_id <> rag.current_user_id() AND rag.is_user()
      AND c.corpora <@ ARRAY(
          SELECT o.id FROM rag.corpora o
          WHERE o.owner_id = rag.current_user_id()
             OR (o.kind = 'global' AND (rag.is_admin() OR (o.shared AND o.active) OR o.id IN (SELECT rag.assigned_corpora())))) $$;

-- ---------------------------------------------------------------- personal corpora
-- Only their owner reads them, whatever is asked for: nothing of it is carried on when they are exported.
CREATE FUNCTION rag.share_no_personal_corpus() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.kind = 'personal' THEN
        NEW.shared := false;
        NEW.groups := '{}';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER corpora_personal BEFORE INSERT OR UPDATE ON rag.corpora
    FOR EACH ROW EXECUTE FUNCTION rag.share_no_personal_corpus();
UPDATE rag.corpora SET shared = false, groups = '{}' WHERE kind = 'personal' AND (shared OR groups <> '{}');

-- ---------------------------------------------------------------- keys made by keys

ALTER TABLE rag.api_keys ADD COLUMN parent_id uuid REFERENCES rag.api_keys ON DELETE CASCADE; -- the key that made it
CREATE INDEX api_keys_parent ON rag.api_keys (parent_id) WHERE parent_id IS NOT NULL;
GRANT SELECT (parent_id), INSERT (parent_id) ON rag.api_keys TO {role};

-- It has no right and no day that the one which made it has not.
CREATE FUNCTION rag.limit_key() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = rag, pg_temp AS $$
DECLARE
    parent rag.api_keys;
BEGIN
    SELECT * INTO parent FROM rag.api_keys k WHERE k.id = NEW.parent_id FOR KEY SHARE;
    IF parent.revoked_at IS NOT NULL OR parent.expires_at <= now() OR NOT NEW.scopes <@ parent.scopes
       OR parent.user_id <> rag.current_user_id() THEN
        RAISE EXCEPTION 'this key makes no such key' USING ERRCODE = 'insufficient_privilege';
    END IF;
    NEW.expires_at := least(NEW.expires_at, parent.expires_at);
    RETURN NEW;
END $$;
CREATE TRIGGER api_keys_limits BEFORE INSERT ON rag.api_keys FOR EACH ROW WHEN (NEW.parent_id IS NOT NULL)
    EXECUTE FUNCTION rag.limit_key();

DROP FUNCTION rag.identify_key(bytea);
CREATE FUNCTION rag.identify_key(hash bytea)
    RETURNS TABLE (id uuid, user_id uuid, role text, scopes text[], expires_at timestamptz)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = rag, pg_temp AS $$
#variable_conflict use_column
BEGIN
    UPDATE rag.api_keys k SET last_used_at = now()
    WHERE k.key_hash = hash AND (k.last_used_at IS NULL OR k.last_used_at < now() - interval '1 minute');
    RETURN QUERY
        WITH RECURSIVE line AS (
            SELECT k.id, k.parent_id, k.revoked_at, k.expires_at FROM rag.api_keys k WHERE k.key_hash = hash
            UNION
            SELECT p.id, p.parent_id, p.revoked_at, p.expires_at FROM rag.api_keys p JOIN line ON p.id = line.parent_id)
        SELECT k.id, u.id, u.role, k.scopes, k.expires_at FROM rag.api_keys k JOIN rag.users u ON u.id = k.user_id
        WHERE k.key_hash = hash AND u.active
          AND NOT EXISTS (SELECT FROM line WHERE line.revoked_at IS NOT NULL OR line.expires_at <= now());
END $$;

REVOKE EXECUTE ON FUNCTION rag.identify_key(bytea), rag.is_answer_of_another(uuid), rag.limit_key(),
    rag.share_no_personal_corpus() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION rag.identify_key(bytea), rag.is_answer_of_another(uuid) TO {role};
