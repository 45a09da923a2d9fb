-- Conversations that stand first in their owner's list.

ALTER TABLE rag.conversations ADD COLUMN pinned boolean NOT NULL DEFAULT false;
DROP INDEX rag.conversations_user;
CREATE INDEX conversations_user ON rag.conversations (user_id, pinned DESC, updated_at DESC);
