-- Sources that corpora are kept equal to by the workers, each at its times. Placeholder: {role}, the unprivileged role.

CREATE TABLE rag.sources (
    id            uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    corpus_id     uuid NOT NULL REFERENCES rag.corpora ON DELETE CASCADE,
    user_id       uuid NOT NULL REFERENCES rag.users ON DELETE CASCADE,  -- as whom it is synced
    target        text NOT NULL,                                         -- the folder or address
    depth         integer NOT NULL DEFAULT 0,                            -- links to follow from a page
    every_seconds integer NOT NULL,                                      -- between two runs
    next_run_at   timestamptz NOT NULL DEFAULT now(),
    leased_until  timestamptz,                                           -- a worker is at it; after this time it is dead
    claim         bigint NOT NULL DEFAULT 0,                             -- rises with each run
    last_run_at   timestamptz,                                           -- end of the last run
    report        jsonb,                                                 -- of the last run that succeeded
    error         text,                                                  -- of the last run, if it failed
    created_at    timestamptz NOT NULL DEFAULT now(),
    UNIQUE (corpus_id, target)
);
CREATE INDEX sources_due ON rag.sources (next_run_at);

ALTER TABLE rag.sources ENABLE ROW LEVEL SECURITY;
CREATE POLICY sources_own ON rag.sources FOR ALL
    USING (corpus_id IN (SELECT c.id FROM rag.corpora c WHERE rag.may_write(c)))
    WITH CHECK (corpus_id IN (SELECT c.id FROM rag.corpora c WHERE rag.may_write(c)));

GRANT SELECT, INSERT, DELETE, UPDATE (next_run_at) ON rag.sources TO {role};

-- For workers, which have no identity until they know whose source it is. A user's sources run one after the other.
CREATE FUNCTION rag.claim_source(lease interval, wanted uuid)
    RETURNS TABLE (id uuid, claim bigint, corpus_id uuid, user_id uuid, role text, target text, depth integer)
    LANGUAGE sql SECURITY DEFINER SET search_path = rag, pg_temp AS $$
    UPDATE rag.sources s SET claim = s.claim + 1, leased_until = now() + lease
    FROM rag.users u
    WHERE u.id = s.user_id AND s.id = (
        SELECT d.id FROM rag.sources d JOIN rag.corpora c ON c.id = d.corpus_id
        WHERE (d.leased_until IS NULL OR d.leased_until < now())
          AND (d.id = wanted OR (wanted IS NULL AND c.active AND d.next_run_at <= now() AND NOT EXISTS (
              SELECT FROM rag.sources o WHERE o.user_id = d.user_id AND o.leased_until >= now())))
        ORDER BY d.next_run_at LIMIT 1 FOR UPDATE OF d SKIP LOCKED)
    RETURNING s.id, s.claim, s.corpus_id, s.user_id, u.role, s.target, s.depth $$;

-- Without a lease it is given up, and another worker goes on at once.
CREATE FUNCTION rag.hold_source(held uuid, as_claimed bigint, lease interval) RETURNS boolean
    LANGUAGE sql SECURITY DEFINER SET search_path = rag, pg_temp AS $$
    WITH renewed AS (UPDATE rag.sources SET leased_until = now() + lease
                     WHERE id = held AND claim = as_claimed AND leased_until IS NOT NULL RETURNING 1)
    SELECT EXISTS (SELECT FROM renewed) $$;

-- After a failure the next run is soon; no source may run more often.
CREATE FUNCTION rag.release_source(held uuid, as_claimed bigint, told jsonb, failure text) RETURNS void
    LANGUAGE sql SECURITY DEFINER SET search_path = rag, pg_temp AS $$
    UPDATE rag.sources SET leased_until = NULL, last_run_at = now(), error = failure, report = coalesce(told, report),
        next_run_at = now() + CASE WHEN failure IS NULL THEN make_interval(secs => every_seconds)
                                   ELSE interval '15 minutes' END
    WHERE id = held AND claim = as_claimed $$;

REVOKE EXECUTE ON FUNCTION rag.claim_source, rag.hold_source, rag.release_source FROM PUBLIC;
GRANT EXECUTE ON FUNCTION rag.claim_source, rag.hold_source, rag.release_source TO {role};
