-- Conversations that their owners share with those who may read all corpora that the answers rest on.
-- Placeholder: {role}, the unprivileged role.

ALTER TABLE rag.conversations ADD COLUMN shared_at timestamptz; -- NULL: the owner alone reads it
CREATE INDEX conversations_shared ON rag.conversations (updated_at DESC) WHERE shared_at IS NOT NULL;
ALTER TABLE rag.messages ADD COLUMN corpora uuid[]; -- that it rests on; NULL: not known, and nobody but the owner reads it

-- The corpora to which a question was limited, and those of all documents whose passages or names the answer could use.
-- NULL where its record or one of the documents is gone.
CREATE FUNCTION rag.find_corpora(message rag.messages) RETURNS uuid[] LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path = rag, pg_temp AS $$
    WITH asked AS (
        SELECT a.record #> '{request,filters}' AS filters, a.record -> 'files' AS files, a.record -> 'reasons' AS reasons
        FROM rag.answers a
        WHERE a.id = message.answer_id AND a.user_id = message.user_id
    ), used AS (
        SELECT CASE WHEN path #>> '{}' ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' THEN (path #>> '{}')::uuid END AS document_id
        FROM jsonb_path_query(jsonb_build_array(message.citations, message.details), 'strict $.**.documentId') path
        WHERE path <> 'null' -- a citation that nothing supports names no document
        UNION SELECT id::uuid FROM asked, jsonb_array_elements_text(filters -> 'documentIds') id
        UNION SELECT id::uuid FROM asked, jsonb_array_elements_text(files) id
    ), corpora AS (
        SELECT d.corpus_id FROM used LEFT JOIN rag.documents d ON d.id = used.document_id
        UNION SELECT id::uuid FROM asked, jsonb_array_elements_text(filters -> 'corpusIds') id
    )
    SELECT CASE
        WHEN message.role = 'user' THEN '{}'
        WHEN NOT EXISTS (SELECT FROM asked WHERE filters IS NOT NULL) THEN NULL
        -- Records of before do not name the files with similar names that an answer told.
        WHEN EXISTS (SELECT FROM asked WHERE files IS NULL AND reasons ?| '{file_unknown,nothing_found}') THEN NULL
        WHEN EXISTS (SELECT FROM corpora WHERE corpus_id IS NULL) THEN NULL
        ELSE ARRAY(SELECT corpus_id FROM corpora) END $$;

CREATE FUNCTION rag.note_corpora() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = rag, pg_temp AS $$
BEGIN
    NEW.corpora := rag.find_corpora(NEW);
    RETURN NEW;
END $$;
CREATE TRIGGER messages_corpora BEFORE INSERT ON rag.messages FOR EACH ROW EXECUTE FUNCTION rag.note_corpora();
UPDATE rag.messages m SET corpora = rag.find_corpora(m);

-- ---------------------------------------------------------------- who reads them
-- A transaction sees conversations of others only if it says so: `rag.shared` is the id of the one that it reads, with its
-- messages, or 'all' for a list of them. Everything else sees the caller's own, as before.

-- Whether a conversation is shared by an active user and rests on nothing but the corpora that are given.
CREATE FUNCTION rag.is_shared(conversation uuid, readable uuid[]) RETURNS boolean LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path = rag, pg_temp AS $$
    SELECT EXISTS (SELECT FROM rag.conversations c JOIN rag.users u ON u.id = c.user_id AND u.active
                   WHERE c.id = conversation AND c.shared_at IS NOT NULL)
       AND NOT EXISTS (SELECT FROM rag.messages m
                       WHERE m.conversation_id = conversation AND (m.corpora <@ readable) IS NOT TRUE) $$;

CREATE POLICY conversations_shared ON rag.conversations FOR SELECT USING (
    shared_at IS NOT NULL AND (SELECT rag.is_user())
    AND (SELECT current_setting('rag.shared', true)) IN ('all', id::text)
    AND rag.is_shared(id, ARRAY(SELECT c.id FROM rag.corpora c)));

-- The conversation that the transaction reads, if the policy above lets it.
CREATE FUNCTION rag.opened_conversation() RETURNS uuid LANGUAGE sql STABLE AS $$
    SELECT c.id FROM rag.conversations c
    WHERE c.shared_at IS NOT NULL AND c.id = nullif(nullif(current_setting('rag.shared', true), ''), 'all')::uuid $$;
CREATE POLICY messages_shared ON rag.messages FOR SELECT USING (conversation_id = (SELECT rag.opened_conversation()));

-- Messages are added to one's own conversations, whatever else the transaction sees.
DROP POLICY messages_own ON rag.messages;
CREATE POLICY messages_own ON rag.messages FOR ALL
    USING (user_id = (SELECT rag.current_user_id()) AND (SELECT rag.is_user()))
    WITH CHECK (user_id = (SELECT rag.current_user_id()) AND (SELECT rag.is_user())
        AND conversation_id IN (SELECT c.id FROM rag.conversations c WHERE c.user_id = (SELECT rag.current_user_id())));

-- Who shares a conversation: names of other users are not seen otherwise.
CREATE FUNCTION rag.sharer(conversation uuid) RETURNS text LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path = rag, pg_temp AS $$
    SELECT u.name FROM rag.conversations c JOIN rag.users u ON u.id = c.user_id AND u.active
    WHERE c.id = conversation AND c.shared_at IS NOT NULL AND c.user_id <> rag.current_user_id() $$;

REVOKE EXECUTE ON FUNCTION rag.find_corpora(rag.messages), rag.note_corpora(), rag.is_shared(uuid, uuid[]), rag.sharer(uuid)
    FROM PUBLIC;
GRANT EXECUTE ON FUNCTION rag.is_shared(uuid, uuid[]), rag.sharer(uuid) TO {role};
