-- How much of its quota each caller has used. Placeholder: {role}, the unprivileged role.
-- UNLOGGED: it costs no WAL; after a crash of the server every quota is full again.
-- A caller has one row a policy, for ever: rows are as many as keys.

CREATE UNLOGGED TABLE rag.rate_limits (
    user_id    uuid NOT NULL REFERENCES rag.users ON DELETE CASCADE,
    credential bytea NOT NULL,           -- SHA-256 of the API key; empty: whatever else proves the user
    policy     text NOT NULL,            -- requests or answers
    full_at    timestamptz NOT NULL,     -- when the quota is full again, if nothing more is used
    granted    boolean NOT NULL,         -- what the last request was told
    PRIMARY KEY (user_id, credential, policy)
) WITH (fillfactor = 50); -- every request rewrites its row: in the same page, without touching the index

ALTER TABLE rag.rate_limits ENABLE ROW LEVEL SECURITY;
CREATE POLICY rate_limits_own ON rag.rate_limits FOR ALL
    USING (user_id = (SELECT rag.current_user_id()) AND (SELECT rag.is_user()))
    WITH CHECK (user_id = (SELECT rag.current_user_id()) AND (SELECT rag.is_user()));

GRANT SELECT, INSERT, UPDATE ON rag.rate_limits TO {role};
