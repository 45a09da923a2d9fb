"""A conversation as Markdown: the words that show each sentence stand beside its mark."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

import msgspec

from rag_service.api.agents.export import write_markdown
from rag_service.api.http.presenters import present_answer
from rag_service.store.accounts.conversations import Conversation, Message
from tests.unit.api.samples import ANSWER

NOW = datetime(2025, 1, 1, tzinfo=UTC)


def test_all_words_that_a_sentence_rests_on_are_exported() -> None:
    cited = msgspec.to_builtins(present_answer(ANSWER).citations[0], enc_hook=str)
    cited["evidence"].append({**cited["evidence"][0], "quote": "Stock is counted on *Mondays*"})
    conversation = Conversation(
        id=UUID(int=1), project_id=None, agent_id=None, title="Stock", pinned=False, shared=False, owner=None,
        created_at=NOW, updated_at=NOW,
    )  # fmt: skip
    message = Message(
        id=UUID(int=2), conversation_id=UUID(int=1), role="assistant", content="There are 4200 units [C1].",
        citations=[cited], answer_id=UUID(int=3), agent_id=None, details={}, created_at=NOW,
    )  # fmt: skip
    exported = write_markdown(conversation, [message], [{}])
    assert "“4200 unités” … “Stock is counted on \\*Mondays\\*”" in exported
