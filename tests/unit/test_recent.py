"""What a model made of texts just now is not made again for the same user, and is for another."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from llama_index.core import MockEmbedding

from rag_service.answering.quoting.quoter import Quoter
from rag_service.recent import OwnedValues, Recent, keep_for, kept_apart
from tests.unit.answering.proof.answers import make_hit
from tests.unit.answering.quoting.test_choice import CARDS, evidence

ANNA, BERTA = uuid4(), uuid4()


class CountingEmbedding(MockEmbedding):
    """Notes what it embeds."""

    embedded: list[str] = []  # noqa: RUF012 - a field of pydantic

    async def _aget_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        self.embedded += texts
        return [[1.0, float(len(text)), 2.0] for text in texts]


def test_what_was_used_least_recently_is_given_up() -> None:
    recent: Recent[int] = Recent(2)
    with keep_for(ANNA):
        recent.keep("one", 1)
        recent.keep("two", 2)
        assert recent.get("one") == 1
        recent.keep("three", 3)
        assert [recent.get(text) for text in ("one", "two", "three")] == [1, None, 3]


def test_nothing_is_kept_for_another_user_or_for_nobody() -> None:
    recent: Recent[int] = Recent(2)
    made: list[str] = []
    read = kept_apart(8)(lambda text: made.append(text) or len(text))

    def use() -> int | None:
        read("one")
        return recent.get("one")

    with keep_for(ANNA):
        recent.keep("one", 1)
        assert [use(), use()] == [1, 1]
    assert made == ["one"]
    with keep_for(BERTA):
        assert use() is None
    assert made == ["one"] * 2
    recent.keep("one", 2)
    assert [use(), use()] == [None, None]
    assert made == ["one"] * 4


def test_what_is_kept_for_no_user_ends_with_the_block() -> None:
    recent: Recent[int] = Recent(2)
    with keep_for(None):
        recent.keep("one", 1)
        with keep_for(None):
            assert recent.get("one") == 1
    with keep_for(None):
        assert recent.get("one") is None


def test_a_user_with_many_values_pushes_out_none_of_a_user_with_few() -> None:
    recent: Recent[int] = Recent(4)
    with keep_for(ANNA):
        recent.keep("hers", 0)
    with keep_for(BERTA):
        for number in range(1, 20):
            recent.keep(str(number), number)
        assert [recent.get(str(number)) for number in (16, 17, 18, 19)] == [None, 17, 18, 19]
    with keep_for(ANNA):
        assert recent.get("hers") == 0


def test_a_value_has_one_owner_and_can_be_forgotten() -> None:
    kept: OwnedValues[str, int] = OwnedValues(2)
    kept.keep("key", 1, owner=ANNA)
    kept.keep("key", 2, owner=BERTA)
    kept.keep("other", 3, owner=ANNA)
    assert [kept.get("key"), kept.get("other")] == [2, 3]
    kept.forget("key")
    kept.forget("key")
    kept.keep("third", 4, owner=ANNA)
    assert [kept.get(key) for key in ("key", "other", "third")] == [None, 3, 4]


def test_no_text_is_kept() -> None:
    recent: Recent[int] = Recent(2)
    with keep_for(ANNA):
        recent.keep("the salary of Vera", 1)
    assert "salary" not in repr(vars(recent))


async def test_a_sentence_that_words_leave_far_behind_is_not_embedded() -> None:
    embedding = CountingEmbedding(embed_dim=3)
    passage = "Our house stands at the lake. How the second card is paid: the second card costs 60 euros."
    asked = evidence("What does the second card cost in euros?", make_hit(passage))
    await Quoter(embedding).choose(asked)
    assert any("60 euros" in text for text in embedding.embedded)
    assert not any("lake" in text for text in embedding.embedded)


async def test_sentences_are_embedded_once_for_several_questions() -> None:
    embedding = CountingEmbedding(embed_dim=3)
    quoter = Quoter(embedding)

    async def ask(question: str) -> Any:
        asked = evidence(question, make_hit(CARDS))
        return "".join((await quoter.choose(asked)).pieces)

    with keep_for(ANNA):
        first = await ask("How much is the first card?")
        count = len(embedding.embedded)
        second = await ask("How much is the second card?")
    assert "24 euros" in first
    assert second
    assert len(embedding.embedded) == count > 0
    with keep_for(BERTA):
        assert await ask("How much is the first card?") == first
    assert len(embedding.embedded) == 2 * count
