-- The different texts of each column of a table, which questions are compared with. {role} is the unprivileged role.

CREATE TABLE rag.table_texts (
    table_id  uuid NOT NULL REFERENCES rag.tables ON DELETE CASCADE,
    corpus_id uuid NOT NULL,                 -- that of the table; what row-level security asks
    place     integer NOT NULL,              -- of the column, from 0
    keys      text[],                        -- folded; NULL: more than 10,000, so that the rows are searched
    texts     text[],                        -- as the cells write them
    PRIMARY KEY (table_id, place)
);
CREATE INDEX table_texts_long ON rag.table_texts (corpus_id) WHERE keys IS NULL;

INSERT INTO rag.table_texts (table_id, corpus_id, place, keys, texts)
SELECT t.id, t.corpus_id, c.place,
       CASE WHEN count(v.key) <= 10000 THEN coalesce(array_agg(v.key) FILTER (WHERE v.key IS NOT NULL), '{}') END,
       CASE WHEN count(v.key) <= 10000 THEN coalesce(array_agg(v.text) FILTER (WHERE v.key IS NOT NULL), '{}') END
FROM rag.tables t
CROSS JOIN LATERAL generate_series(0, jsonb_array_length(t.columns) - 1) AS c(place)
LEFT JOIN (
    SELECT r.table_id, e.place::int - 1 AS place, e.cell ->> 1 AS key, min(e.cell ->> 0) AS text
    FROM rag.table_rows r, jsonb_array_elements(r.cells) WITH ORDINALITY AS e(cell, place)
    WHERE r.is_data AND jsonb_typeof(e.cell) = 'array' AND e.cell ->> 2 IS NULL
    GROUP BY 1, 2, 3) AS v ON v.table_id = t.id AND v.place = c.place
GROUP BY t.id, t.corpus_id, c.place;

ALTER TABLE rag.table_texts ENABLE ROW LEVEL SECURITY;
CREATE POLICY table_texts_read ON rag.table_texts FOR SELECT
    USING (corpus_id IN (SELECT c.id FROM rag.corpora c));
CREATE POLICY table_texts_insert ON rag.table_texts FOR INSERT
    WITH CHECK (corpus_id IN (SELECT c.id FROM rag.corpora c WHERE rag.may_write(c)));
CREATE POLICY table_texts_delete ON rag.table_texts FOR DELETE
    USING (corpus_id IN (SELECT c.id FROM rag.corpora c WHERE rag.may_write(c)));
GRANT SELECT, INSERT, DELETE ON rag.table_texts TO {role};
