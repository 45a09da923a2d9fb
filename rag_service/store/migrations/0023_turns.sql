-- Turns by user in the queue of uploads, sources of one's own, and rights that end when the provider refuses a user.
-- Placeholder: {role}, the unprivileged role.

-- The higher its priority, the sooner a job runs. A user's next job comes after those that the user has waiting, and
-- level with the first job that waits at all: so each user with waiting jobs is served in turn.
CREATE INDEX procrastinate_jobs_turn ON rag.procrastinate_jobs ((args ->> 'user_id'), priority) WHERE status = 'todo';
CREATE FUNCTION rag.take_turn() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = rag, pg_temp AS $$
BEGIN
    NEW.priority := coalesce(least(
        (SELECT max(j.priority) FROM rag.procrastinate_jobs j WHERE j.status = 'todo'),
        (SELECT min(j.priority) - 1 FROM rag.procrastinate_jobs j
         WHERE j.status = 'todo' AND j.args ->> 'user_id' = NEW.args ->> 'user_id')), 0);
    RETURN NEW;
END $$;
CREATE TRIGGER take_turn BEFORE INSERT ON rag.procrastinate_jobs FOR EACH ROW EXECUTE FUNCTION rag.take_turn();

-- A source runs as its user, which must be the one who adds it.
CREATE POLICY sources_as_oneself ON rag.sources AS RESTRICTIVE FOR INSERT WITH CHECK (user_id = rag.current_user_id());

-- Whom the provider knows but may no longer sign in: role and groups are those of now, and the sessions end.
CREATE FUNCTION rag.refuse_subject(wanted text, given_role text, given_groups text[]) RETURNS void
    LANGUAGE sql SECURITY DEFINER SET search_path = rag, pg_temp AS $$
    DELETE FROM rag.sessions s USING rag.users u WHERE u.id = s.user_id AND u.subject = wanted;
    UPDATE rag.users SET role = coalesce(given_role, role), groups = given_groups WHERE subject = wanted $$;

REVOKE EXECUTE ON FUNCTION rag.refuse_subject(text, text, text[]), rag.take_turn() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION rag.refuse_subject(text, text, text[]) TO {role};
