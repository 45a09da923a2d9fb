-- The day since when a document holds, or of which it is, as its text tells; null: it tells none, or was read before
-- this was looked for.
ALTER TABLE rag.documents ADD COLUMN dated date;
