-- Typed tables of sheets and files, beside the chunks of their document. Placeholder: {role}, the unprivileged role.

CREATE TABLE rag.tables (
    id          uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    document_id uuid NOT NULL REFERENCES rag.documents ON DELETE CASCADE,
    corpus_id   uuid NOT NULL REFERENCES rag.corpora ON DELETE CASCADE,
    number      integer NOT NULL,            -- position in the document, from 0
    sheet       text,                        -- NULL: the format has none
    caption     text NOT NULL DEFAULT '',    -- the lines above it
    columns     jsonb NOT NULL,              -- [{letter, name, kind, unit, mixed, distinct, filled}]
    row_count   integer NOT NULL,            -- without totals and headings
    UNIQUE (document_id, number)
);
CREATE INDEX tables_corpus ON rag.tables (corpus_id);

-- `cells` has one element for each column: [text, key, number, start], or null for an empty cell. `key` is the folded
-- text that questions are compared with, `start` the cell's first character in the document's stored text.
CREATE TABLE rag.table_rows (
    table_id   uuid NOT NULL REFERENCES rag.tables ON DELETE CASCADE,
    number     integer NOT NULL,             -- row of the sheet or file, 1-based
    corpus_id  uuid NOT NULL,                -- that of the table; what row-level security asks
    is_data    boolean NOT NULL,             -- neither a total nor a heading
    is_heading boolean NOT NULL,
    section    text NOT NULL DEFAULT '',     -- the sub-heading above it
    cells      jsonb NOT NULL,
    PRIMARY KEY (table_id, number)
);

DO $$
DECLARE
    relation text;
BEGIN
    FOREACH relation IN ARRAY ARRAY['tables', 'table_rows'] LOOP
        EXECUTE format('ALTER TABLE rag.%I ENABLE ROW LEVEL SECURITY', relation);
        EXECUTE format('CREATE POLICY %I ON rag.%I FOR SELECT
            USING (corpus_id IN (SELECT c.id FROM rag.corpora c))', relation || '_read', relation);
        EXECUTE format('CREATE POLICY %I ON rag.%I FOR INSERT
            WITH CHECK (corpus_id IN (SELECT c.id FROM rag.corpora c WHERE rag.may_write(c)))',
            relation || '_insert', relation);
        EXECUTE format('CREATE POLICY %I ON rag.%I FOR DELETE
            USING (corpus_id IN (SELECT c.id FROM rag.corpora c WHERE rag.may_write(c)))',
            relation || '_delete', relation);
    END LOOP;
END $$;

GRANT SELECT, INSERT, DELETE ON rag.tables, rag.table_rows TO {role};
