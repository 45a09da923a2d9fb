-- An answer by its text: what a conversation that a client keeps has cited before.
CREATE INDEX answers_text ON rag.answers (user_id, md5(record ->> 'answer'));
