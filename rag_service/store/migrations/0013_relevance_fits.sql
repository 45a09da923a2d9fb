-- What was measured of each embedding model's cosines, over the shipped question sets. Placeholder: {role}, the
-- unprivileged role. It holds nothing of any user: every user reads it, administrators and the service itself write.

CREATE TABLE rag.relevance_fits (
    model     text PRIMARY KEY,                  -- name of the embedding model
    revision  bytea NOT NULL,                    -- float32, little-endian: vectors of one text, by which it is known
    scales    jsonb NOT NULL DEFAULT '{}',       -- language → {offset, factor}; {}: not measured yet
    fits      jsonb NOT NULL DEFAULT '{}',       -- language → the numbers of index.yaml's calibration; {}: not made yet
    leased_until timestamptz NOT NULL            -- until then one process measures, and the others wait
);

ALTER TABLE rag.relevance_fits ENABLE ROW LEVEL SECURITY;
CREATE POLICY relevance_fits_read ON rag.relevance_fits FOR SELECT USING ((SELECT rag.is_user()));
CREATE POLICY relevance_fits_insert ON rag.relevance_fits FOR INSERT WITH CHECK ((SELECT rag.is_admin()));
CREATE POLICY relevance_fits_update ON rag.relevance_fits FOR UPDATE
    USING ((SELECT rag.is_admin())) WITH CHECK ((SELECT rag.is_admin()));

GRANT SELECT, INSERT, UPDATE ON rag.relevance_fits TO {role};
