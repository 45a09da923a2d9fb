-- Tables of pages and reports: where they stand, and columns that are years or periods.

ALTER TABLE rag.tables
    ADD COLUMN unit text NOT NULL DEFAULT '',            -- of all figures, as the table says: "in millions"
    ADD COLUMN by_period boolean NOT NULL DEFAULT false, -- its columns are years or periods
    ADD COLUMN page integer;                             -- of its first row; NULL: the format has none
ALTER TABLE rag.table_rows
    ADD COLUMN page integer;
