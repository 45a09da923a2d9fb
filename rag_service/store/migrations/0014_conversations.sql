-- What a page needs to show a kept answer as it was. Placeholder: {role}, the unprivileged role.

ALTER TABLE rag.messages ADD COLUMN agent_id uuid REFERENCES rag.agents ON DELETE SET NULL; -- NULL: all documents
ALTER TABLE rag.messages ADD COLUMN details jsonb NOT NULL DEFAULT '{}'; -- of an answer: what is neither text nor quote
