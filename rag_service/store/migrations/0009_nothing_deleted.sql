-- A trigger for each statement runs, too, when the statement changed no row, as the one that makes room for a document
-- whose predecessor has expired mostly does. Its own statement was then planned for thousands of postings: in a
-- session that had begun when there were none, by passing over all of them, for every document that was written.

CREATE OR REPLACE FUNCTION rag.delete_postings() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = rag, pg_temp AS $$
BEGIN
    IF EXISTS (SELECT FROM gone) THEN
        DELETE FROM rag.postings WHERE document_id = ANY(ARRAY(SELECT id FROM gone));
    END IF;
    RETURN NULL;
END $$;
