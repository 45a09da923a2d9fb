"""Query embeddings in memory, and the breaker around an embedding."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rag_service.domain import LOCAL_ADMIN
from rag_service.errors import EmbeddingError
from rag_service.models.embedding.guarded import GuardedEmbedding, guard_embedding
from rag_service.recent import keep_for
from rag_service.settings import Settings
from tests.conftest import FakeEmbedding


class Counting(FakeEmbedding):
    asked: list[str] = []  # noqa: RUF012 - pydantic copies it
    broken: bool = False

    async def _aget_query_embedding(self, query: str) -> list[float]:
        self.asked.append(query)
        if self.broken:
            raise EmbeddingError("down")
        return self._embed(query)


@pytest.fixture(autouse=True)
def user() -> Iterator[None]:
    """Ask everything for one user."""
    with keep_for(LOCAL_ADMIN.user_id):
        yield


@pytest.fixture
def model() -> Counting:
    return Counting(model_name="counting")


def remember_two(model: Counting) -> GuardedEmbedding:
    """The model with room for the vectors of two questions."""
    return guard_embedding(model, Settings(query_cache_size=2))


async def test_the_same_question_is_embedded_once(model: Counting) -> None:
    counts: list[tuple[int, int]] = []
    cached = remember_two(model)
    cached.observe_cache = lambda *both: counts.append(both)
    vectors = [await cached.aget_query_embedding(text) for text in ("a", "b", "a", "c", "a", "b")]
    assert model.asked == ["a", "b", "c", "b"]  # "b" was the least recently asked when "c" came
    assert vectors[0] == vectors[2] == model._embed("a")
    assert counts == [(0, 1), (0, 1), (1, 0), (0, 1), (1, 0), (0, 1)]


async def test_a_caller_cannot_spoil_what_is_kept(model: Counting) -> None:
    cached = remember_two(model)
    (await cached.aget_query_embedding("a")).clear()
    (await cached.aget_query_embedding("a")).clear()
    assert await cached.aget_query_embedding("a") == model._embed("a")


async def test_failures_are_not_kept(model: Counting) -> None:
    cached = remember_two(model)
    model.broken = True
    with pytest.raises(EmbeddingError):
        await cached.aget_query_embedding("a")
    model.broken = False
    assert await cached.aget_query_embedding("a") == model._embed("a")


async def test_questions_are_kept_as_hashes_alone(model: Counting) -> None:
    cached = remember_two(model)
    await cached.aget_query_embedding("a private question")
    assert "private" not in repr(vars(cached._cached))


async def test_passages_pass_through_in_their_batches(model: Counting) -> None:
    cached = remember_two(model)
    assert await cached.aget_text_embedding_batch(["x", "y"]) == [model._embed("x"), model._embed("y")]
    assert cached.embed_batch_size == model.embed_batch_size


async def test_a_guarded_embedding_fails_at_once_after_failures_in_a_row(model: Counting) -> None:
    timed: list[tuple[str, int]] = []
    settings = Settings(embedding_provider="ollama", breaker_failures=2, breaker_seconds=60)
    guarded = guard_embedding(model, settings)
    guarded.observe = lambda role, count, _: timed.append((role, count))
    await guarded.aget_query_embedding("a")
    model.broken = True
    for _ in range(2):
        with pytest.raises(EmbeddingError, match="down"):
            await guarded.aget_query_embedding("b")
    with pytest.raises(EmbeddingError, match="not called for a while") as caught:
        await guarded.aget_query_embedding("b")
    assert caught.value.retry_after == 60
    assert model.asked == ["a", "b", "b"]
    assert timed == [("query", 1)]
