"""What a model made of texts just now is not made again."""

from __future__ import annotations

from typing import Any

from llama_index.core import MockEmbedding
from llama_index.core.base.llms.types import MessageRole

from rag_service.models.extractive.extractive import ExtractiveLLM, GroundedMessage
from rag_service.models.recent import Recent
from tests.unit.answering.proof.answers import make_hit
from tests.unit.models.extractive.test_extractive import CARDS, evidence


class CountingEmbedding(MockEmbedding):
    """Notes what it embeds."""

    embedded: list[str] = []  # noqa: RUF012 - a field of pydantic

    async def _aget_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        self.embedded += texts
        return [[1.0, float(len(text)), 2.0] for text in texts]


def test_what_was_used_least_recently_is_given_up() -> None:
    recent: Recent[int] = Recent(2)
    recent.keep("one", 1)
    recent.keep("two", 2)
    assert recent.get("one") == 1
    recent.keep("three", 3)
    assert [recent.get(text) for text in ("one", "two", "three")] == [1, None, 3]


def test_no_text_is_kept() -> None:
    recent: Recent[int] = Recent(2)
    recent.keep("the salary of Vera", 1)
    assert "salary" not in repr(vars(recent))


async def test_a_sentence_that_words_leave_far_behind_is_not_embedded() -> None:
    embedding = CountingEmbedding(embed_dim=3)
    passage = "Our house stands at the lake. How the second card is paid: the second card costs 60 euros."
    asked = evidence("What does the second card cost in euros?", make_hit(passage))
    await ExtractiveLLM(embedding).achat([GroundedMessage(role=MessageRole.USER, content="", evidence=asked)])
    assert any("60 euros" in text for text in embedding.embedded)
    assert not any("lake" in text for text in embedding.embedded)


async def test_sentences_are_embedded_once_for_several_questions() -> None:
    embedding = CountingEmbedding(embed_dim=3)
    llm = ExtractiveLLM(embedding)

    async def ask(question: str) -> Any:
        asked = evidence(question, make_hit(CARDS))
        return (await llm.achat([GroundedMessage(role=MessageRole.USER, content="", evidence=asked)])).message.content

    first = await ask("How much is the first card?")
    count = len(embedding.embedded)
    second = await ask("How much is the second card?")
    assert "24 euros" in first
    assert second
    assert len(embedding.embedded) == count > 0
