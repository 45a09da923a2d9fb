-- Who shares a conversation, by its own corpora: the list of shared conversations asks for each one it shows.
CREATE OR REPLACE FUNCTION rag.sharer(conversation uuid) RETURNS text LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path = rag, pg_temp AS $$
    SELECT u.name FROM rag.conversations c JOIN rag.users u ON u.id = c.user_id AND u.active
    WHERE c.id = conversation AND c.shared_at IS NOT NULL AND c.user_id <> rag.current_user_id() AND (SELECT rag.is_user())
      AND c.corpora IS NOT NULL
      AND NOT EXISTS (
          SELECT FROM unnest(c.corpora) AS wanted(id) LEFT JOIN rag.corpora o ON o.id = wanted.id
          WHERE (o.owner_id = rag.current_user_id()
                 OR (o.kind = 'global' AND ((o.shared AND o.active) OR (SELECT rag.is_admin())
                                            OR o.id IN (SELECT rag.assigned_corpora())))) IS NOT TRUE) $$;
