-- Who may read a shared conversation is decided by its own row: a list of thousands does not look into their messages.
-- Placeholder: {role}, the unprivileged role.

ALTER TABLE rag.conversations ADD COLUMN corpora uuid[] DEFAULT '{}'; -- that its messages rest on; NULL: not known

CREATE FUNCTION rag.corpora_of_messages(conversation uuid) RETURNS uuid[] LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN NOT EXISTS (SELECT FROM rag.messages m WHERE m.conversation_id = conversation AND m.corpora IS NULL)
        THEN ARRAY(SELECT DISTINCT unnest(m.corpora) FROM rag.messages m WHERE m.conversation_id = conversation) END $$;
UPDATE rag.conversations c SET corpora = rag.corpora_of_messages(c.id);

CREATE FUNCTION rag.note_conversation_corpora() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = rag, pg_temp AS $$
DECLARE
    changed uuid := coalesce(NEW.conversation_id, OLD.conversation_id);
BEGIN
    PERFORM FROM rag.conversations c WHERE c.id = changed FOR NO KEY UPDATE; -- of two at once, the second sees both messages
    UPDATE rag.conversations c SET corpora = rag.corpora_of_messages(changed) WHERE c.id = changed;
    RETURN NULL;
END $$;
CREATE TRIGGER messages_conversation_corpora AFTER INSERT OR DELETE OR UPDATE OF corpora ON rag.messages
    FOR EACH ROW EXECUTE FUNCTION rag.note_conversation_corpora();

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
