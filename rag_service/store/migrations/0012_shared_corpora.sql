-- Global corpora that every user may read without an agent. Those that exist stay as they are.

ALTER TABLE rag.corpora ADD COLUMN shared boolean NOT NULL DEFAULT false;
-- What RAG_SHARE_GLOBAL_CORPORA says: the service gives it to its connections.
ALTER TABLE rag.corpora ALTER COLUMN shared
    SET DEFAULT (coalesce(current_setting('rag.share_global', true), '') = 'on');

DROP POLICY corpora_read ON rag.corpora;
CREATE POLICY corpora_read ON rag.corpora FOR SELECT USING (
    (owner_id = (SELECT rag.current_user_id()) AND (SELECT rag.is_user()))
    OR (kind = 'global' AND ((SELECT rag.is_admin())
        OR (shared AND active AND (SELECT rag.is_user()))
        OR id IN (SELECT rag.assigned_corpora()))));
