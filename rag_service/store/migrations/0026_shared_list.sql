-- Who may read a shared conversation is decided by its own row: a list of thousands does not look into their messages.
-- Placeholder: {role}, the unprivileged role.

ALTER TABLE rag.conversations ADD COLUMN corpora uuid[] DEFAULT '{}'; -- that its messages rest on; NULL: not known

CREATE FUNCTION rag.corpora_of_messages(conversation uuid) RETURNS uuid[] LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN NOT EXISTS (SELECT FROM rag.messages m WHERE m.conversation_id = conversation AND m.corpora IS NULL)
        THEN ARRAY(SELECT DISTINCT unnest(m.corpora) FROM rag.messages m WHERE m.conversation_id = conversation) END $$;
UPDATE rag.conversations c SET corpora = rag.corpora_of_messages(c.id);

-- Once for a statement: of a long conversation, many messages are deleted at once.
CREATE FUNCTION rag.note_conversation_corpora() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = rag, pg_temp AS $$
BEGIN
    -- Of two at once, the second sees the messages of both.
    PERFORM FROM rag.conversations c WHERE c.id IN (SELECT m.conversation_id FROM changed m) ORDER BY c.id FOR NO KEY UPDATE;
    UPDATE rag.conversations c SET corpora = rag.corpora_of_messages(c.id)
        WHERE c.id IN (SELECT m.conversation_id FROM changed m);
    RETURN NULL;
END $$;
CREATE TRIGGER messages_added AFTER INSERT ON rag.messages
    REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION rag.note_conversation_corpora();
CREATE TRIGGER messages_changed AFTER UPDATE ON rag.messages
    REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION rag.note_conversation_corpora();
CREATE TRIGGER messages_deleted AFTER DELETE ON rag.messages
    REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION rag.note_conversation_corpora();

-- A function, since a user does not see the accounts of others.
CREATE FUNCTION rag.active_users() RETURNS SETOF uuid LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path = rag, pg_temp AS $$ SELECT u.id FROM rag.users u WHERE u.active $$;

DROP POLICY conversations_shared ON rag.conversations;
CREATE POLICY conversations_shared ON rag.conversations FOR SELECT USING (
    shared_at IS NOT NULL AND (SELECT rag.is_user())
    AND (SELECT current_setting('rag.shared', true)) IN ('all', id::text)
    AND corpora <@ ARRAY(SELECT c.id FROM rag.corpora c)
    AND user_id IN (SELECT rag.active_users()));
DROP FUNCTION rag.is_shared(uuid, uuid[]);

REVOKE EXECUTE ON FUNCTION rag.corpora_of_messages(uuid), rag.note_conversation_corpora(), rag.active_users() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION rag.active_users() TO {role};
