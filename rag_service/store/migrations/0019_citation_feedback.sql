-- Feedback on one citation of an answer, besides that on the whole.

ALTER TABLE rag.feedback
    ADD COLUMN citation integer CHECK (citation >= 0),  -- place among the answer's citations, from 0; NULL: the whole answer
    ADD COLUMN quote text NOT NULL DEFAULT '',          -- of that citation; copied as question and answer are
    DROP CONSTRAINT feedback_pkey;
CREATE UNIQUE INDEX feedback_given ON rag.feedback (answer_id, user_id, citation) NULLS NOT DISTINCT;
