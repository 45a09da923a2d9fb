-- A stamp more than twice as far ahead as stamps are set is of a clock that was set back since. Nobody waits for it.
-- Twice: now() is when a transaction began, and the stamp may be of one that began later and ended sooner.

CREATE OR REPLACE FUNCTION rag.read_password(called text, attempts integer) RETURNS TABLE (user_id uuid, hash text)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = rag, pg_temp AS $$
#variable_conflict use_column
DECLARE
    step constant interval := interval '1 minute' / attempts;
    latest constant timestamptz := now() + interval '1 minute';
BEGIN
    DELETE FROM rag.password_attempts WHERE full_at NOT BETWEEN now() AND now() + interval '2 minutes';
    INSERT INTO rag.password_attempts AS a VALUES (sha256(convert_to(called, 'UTF8')), now() + step)
    ON CONFLICT (name_hash) DO UPDATE SET full_at = greatest(a.full_at, now()) + step
        WHERE greatest(a.full_at, now()) + step <= latest;
    IF FOUND THEN
        RETURN QUERY SELECT u.id, p.hash FROM (SELECT) AS one
            LEFT JOIN rag.users u ON u.name = called AND u.active LEFT JOIN rag.passwords p ON p.user_id = u.id;
    END IF;
END $$;

-- The lease of another process may be longer than this one's: up to an hour, which RAG_JOB_STALLED_SECONDS may be at most.
CREATE OR REPLACE FUNCTION rag.claim_source(lease interval, wanted uuid)
    RETURNS TABLE (id uuid, claim bigint, corpus_id uuid, user_id uuid, role text, target text, depth integer)
    LANGUAGE sql SECURITY DEFINER SET search_path = rag, pg_temp AS $$
    UPDATE rag.sources s SET claim = s.claim + 1, leased_until = now() + lease
    FROM rag.users u
    WHERE u.id = s.user_id AND s.id = (
        SELECT d.id FROM rag.sources d JOIN rag.corpora c ON c.id = d.corpus_id
        WHERE (d.leased_until IS NULL OR d.leased_until NOT BETWEEN now() AND now() + 2 * greatest(lease, interval '1 hour'))
          AND (d.id = wanted OR (wanted IS NULL AND c.active
              AND d.next_run_at NOT BETWEEN now() AND now() + 2 * greatest(make_interval(secs => d.every_seconds), interval '15 minutes')
              AND NOT EXISTS (SELECT FROM rag.sources o
                              WHERE o.user_id = d.user_id AND o.leased_until BETWEEN now() AND now() + 2 * greatest(lease, interval '1 hour'))))
        ORDER BY d.next_run_at LIMIT 1 FOR UPDATE OF d SKIP LOCKED)
    RETURNING s.id, s.claim, s.corpus_id, s.user_id, u.role, s.target, s.depth $$;
