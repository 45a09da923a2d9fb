-- How each judge of answers did on the shipped claims. Placeholder: {role}, the unprivileged role. It holds nothing of any
-- user: every user reads it, administrators and the service itself write.

CREATE TABLE rag.judge_examinations (
    judge     text NOT NULL,                     -- name of the judge: its model, or its class
    revision  text NOT NULL,                     -- a hash of its class, its prompt, its thresholds and the claims
    weights   text NOT NULL DEFAULT '',          -- digest of the model's weights, from servers that tell it
    figures   jsonb,                             -- what it said; NULL: not examined yet
    leased_until timestamptz NOT NULL,           -- until then one process examines, and the others wait
    PRIMARY KEY (judge, revision)
);

ALTER TABLE rag.judge_examinations ENABLE ROW LEVEL SECURITY;
CREATE POLICY judge_examinations_read ON rag.judge_examinations FOR SELECT USING ((SELECT rag.is_user()));
CREATE POLICY judge_examinations_insert ON rag.judge_examinations FOR INSERT WITH CHECK ((SELECT rag.is_admin()));
CREATE POLICY judge_examinations_update ON rag.judge_examinations FOR UPDATE
    USING ((SELECT rag.is_admin())) WITH CHECK ((SELECT rag.is_admin()));

GRANT SELECT, INSERT, UPDATE ON rag.judge_examinations TO {role};
