-- Sign-in: groups that read corpora, sessions of browsers, passwords. Placeholder: {role}, the unprivileged role.

ALTER TABLE rag.users ADD COLUMN groups text[] NOT NULL DEFAULT '{}';   -- as the provider named them at the last sign-in
ALTER TABLE rag.corpora ADD COLUMN groups text[] NOT NULL DEFAULT '{}'; -- whose members read it, if it is global

-- Global corpora that the caller reads through an agent or a group.
CREATE OR REPLACE FUNCTION rag.assigned_corpora() RETURNS SETOF uuid LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path = rag, pg_temp AS $$
    SELECT ac.corpus_id FROM rag.agent_corpora ac
    JOIN rag.agents a ON a.id = ac.agent_id AND a.active
    JOIN rag.corpora c ON c.id = ac.corpus_id AND c.kind = 'global' AND c.active
    WHERE rag.is_user()
    UNION ALL
    SELECT c.id FROM rag.users u JOIN rag.corpora c ON c.groups && u.groups
    WHERE u.id = rag.current_user_id() AND u.active AND c.kind = 'global' AND c.active $$;

-- ---------------------------------------------------------------- sessions
-- No policy and no grant: through the functions alone, which take a hash that only the holder of the token knows.

CREATE TABLE rag.sessions (
    token_hash bytea PRIMARY KEY CHECK (length(token_hash) = 32), -- SHA-256 of 256 random bits
    user_id    uuid NOT NULL REFERENCES rag.users ON DELETE CASCADE,
    used_at    timestamptz NOT NULL DEFAULT now(),                -- to the minute
    ends_at    timestamptz NOT NULL
);
CREATE INDEX sessions_user ON rag.sessions (user_id);
ALTER TABLE rag.sessions ENABLE ROW LEVEL SECURITY;

CREATE FUNCTION rag.open_session(hash bytea, holder uuid, lifetime interval) RETURNS void
    LANGUAGE sql SECURITY DEFINER SET search_path = rag, pg_temp AS $$
    DELETE FROM rag.sessions WHERE user_id = holder AND ends_at < now();
    INSERT INTO rag.sessions (token_hash, user_id, ends_at)
    SELECT hash, id, now() + lifetime FROM rag.users WHERE id = holder AND active $$;

CREATE FUNCTION rag.identify_session(hash bytea, idle interval)
    RETURNS TABLE (user_id uuid, role text, ends_at timestamptz)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = rag, pg_temp AS $$
#variable_conflict use_column
BEGIN
    UPDATE rag.sessions SET used_at = now()
    WHERE token_hash = hash AND used_at BETWEEN now() - idle AND now() - interval '1 minute';
    RETURN QUERY
        SELECT u.id, u.role, s.ends_at FROM rag.sessions s JOIN rag.users u ON u.id = s.user_id AND u.active
        WHERE s.token_hash = hash AND s.ends_at > now() AND s.used_at >= now() - idle;
END $$;

CREATE FUNCTION rag.close_session(hash bytea) RETURNS void
    LANGUAGE sql SECURITY DEFINER SET search_path = rag, pg_temp AS
    $$ DELETE FROM rag.sessions WHERE token_hash = hash $$;

-- Who is activated again signs in again.
CREATE FUNCTION rag.end_sessions() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = rag, pg_temp AS $$
BEGIN
    DELETE FROM rag.sessions WHERE user_id = NEW.id;
    RETURN NULL;
END $$;
CREATE TRIGGER users_deactivated AFTER UPDATE OF active ON rag.users
    FOR EACH ROW WHEN (NOT NEW.active) EXECUTE FUNCTION rag.end_sessions();

-- ---------------------------------------------------------------- whom a provider signs in
-- The user of a subject, created at the first sign-in; no row where the user is inactive. A name that is taken gets a
-- number: names are the users' to choose, so that an account is never found by one.

CREATE FUNCTION rag.admit_subject(wanted text, called text, given_role text, given_groups text[]) RETURNS TABLE (id uuid)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = rag, pg_temp AS $$
#variable_conflict use_column
BEGIN
    FOR number IN 1..1000 LOOP
        RETURN QUERY UPDATE rag.users SET role = coalesce(given_role, role), groups = given_groups
            WHERE subject = wanted AND active RETURNING users.id;
        IF FOUND OR EXISTS (SELECT FROM rag.users WHERE subject = wanted) THEN
            RETURN;
        END IF;
        RETURN QUERY INSERT INTO rag.users (name, role, subject, groups)
            VALUES (called || CASE number WHEN 1 THEN '' ELSE ' (' || number || ')' END,
                    coalesce(given_role, 'user'), wanted, given_groups)
            ON CONFLICT DO NOTHING RETURNING users.id;
        IF FOUND THEN
            RETURN;
        END IF;
    END LOOP;
END $$;

-- ---------------------------------------------------------------- local accounts

CREATE TABLE rag.passwords (
    user_id       uuid PRIMARY KEY REFERENCES rag.users ON DELETE CASCADE,
    hash          text,         -- salted, with its parameters; NULL: not chosen yet
    invitation    bytea UNIQUE, -- SHA-256 of the link's 256 random bits; NULL: used
    invited_until timestamptz
);
ALTER TABLE rag.passwords ENABLE ROW LEVEL SECURITY;
CREATE POLICY passwords_invite ON rag.passwords FOR ALL
    USING ((SELECT rag.is_admin())) WITH CHECK ((SELECT rag.is_admin()));

-- Takes one of the attempts that a name has in a minute (the cell rate algorithm, as for rate_limits); no row when
-- they are used up, else the user's id and password, both NULL where there is none.
CREATE UNLOGGED TABLE rag.password_attempts (
    name_hash bytea PRIMARY KEY,
    full_at   timestamptz NOT NULL
);
ALTER TABLE rag.password_attempts ENABLE ROW LEVEL SECURITY;

CREATE FUNCTION rag.read_password(called text, attempts integer) RETURNS TABLE (user_id uuid, hash text)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = rag, pg_temp AS $$
#variable_conflict use_column
DECLARE
    step constant interval := interval '1 minute' / attempts;
BEGIN
    DELETE FROM rag.password_attempts WHERE full_at < now();
    INSERT INTO rag.password_attempts AS a VALUES (sha256(convert_to(called, 'UTF8')), now() + step)
    ON CONFLICT (name_hash) DO UPDATE SET full_at = greatest(a.full_at, now()) + step
        WHERE greatest(a.full_at, now()) + step <= now() + interval '1 minute';
    IF FOUND THEN
        RETURN QUERY SELECT u.id, p.hash FROM (SELECT) AS one
            LEFT JOIN rag.users u ON u.name = called AND u.active LEFT JOIN rag.passwords p ON p.user_id = u.id;
    END IF;
END $$;

-- Whose invitation this is; no row where it is unknown, used or too old. The password ends all of the user's sessions.
CREATE FUNCTION rag.accept_invitation(link bytea, chosen text) RETURNS TABLE (user_id uuid)
    LANGUAGE sql SECURITY DEFINER SET search_path = rag, pg_temp AS $$
    WITH accepted AS (
        UPDATE rag.passwords p SET hash = chosen, invitation = NULL FROM rag.users u
        WHERE p.invitation = link AND p.invited_until > now() AND u.id = p.user_id AND u.active RETURNING p.user_id),
    ended AS (DELETE FROM rag.sessions s USING accepted a WHERE s.user_id = a.user_id)
    SELECT user_id FROM accepted $$;

-- ---------------------------------------------------------------- the service's role

GRANT SELECT (user_id, invitation, invited_until), INSERT (user_id, invitation, invited_until), UPDATE (invitation, invited_until)
    ON rag.passwords TO {role};

DO $$
DECLARE
    function regprocedure;
BEGIN
    FOR function IN SELECT p.oid::regprocedure FROM pg_proc p
        WHERE p.pronamespace = 'rag'::regnamespace AND p.proname IN (
            'open_session', 'identify_session', 'close_session', 'end_sessions', 'admit_subject', 'read_password',
            'accept_invitation') LOOP
        EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', function);
        EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO {role}', function);
    END LOOP;
END $$;
