"""What a question costs when its user asks it again, counted in calls: nothing that only its words decide.

Another user's same question costs all of it again: the time of a reply must not tell what others ask.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import httpx
import pytest
from litestar import Litestar

from rag_service.language import detection, words
from rag_service.models.embedding.guarded import guard_embedding
from rag_service.settings import Settings
from tests.conftest import FakeEmbedding
from tests.integration.tenancy.conftest import House, text_file
from tests.integration.tenancy.web import client_of, new_key, real_application

QUESTION = "Where do the llamas of the northern valley sleep at noon?"
TEXT = "The llamas of the northern valley sleep at noon in the red barn.\n\nIn the evening they graze."
SEARCH, ANSWER = "/api/v1/query", "/api/v1/query/answer"


class Counting(FakeEmbedding):
    asked: list[str] = []  # noqa: RUF012 - pydantic copies it

    async def _aget_query_embedding(self, query: str) -> list[float]:
        self.asked.append(query)
        return self._embed(query)


@pytest.fixture
def embedding() -> Counting:
    return Counting(model_name="fake-bag-of-words")


@asynccontextmanager
async def served(house: House, embedding: Counting) -> AsyncIterator[tuple[Litestar, str, str]]:
    """The service, and the keys of two users who have a document of their own each."""
    keys = []
    for name in ("anna", "berta"):
        user = await house.user(name)
        await house.index(user, await house.corpus(user), text_file("llamas.txt", TEXT))
        keys.append(await new_key(house, user))
    async with real_application(house.server, guard_embedding(embedding, Settings())) as (application, _):
        anna, berta = keys
        yield application, anna, berta


async def ask(application: Litestar, key: str, path: str) -> Mapping[str, object]:
    async with client_of(application, key) as client:
        reply: httpx.Response = await client.post(path, json={"query": QUESTION, "similarityThreshold": 0})
    assert reply.status_code == 200, reply.text
    found: Mapping[str, object] = reply.json()
    return found


async def test_it_is_embedded_and_its_language_told_once_for_a_user_and_anew_for_another(
    house: House, embedding: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    recognised: list[str] = []
    recognise = detection._recognise
    monkeypatch.setattr(detection, "_recognise", lambda text: recognised.append(text) or recognise(text))
    async with served(house, embedding) as (application, anna, berta):
        for expected, key, path in ((1, anna, SEARCH), (1, anna, SEARCH), (1, anna, ANSWER), (2, berta, SEARCH)):
            assert (await ask(application, key, path))["language"] == "en"
            assert embedding.asked.count(QUESTION) == expected
            assert recognised.count(QUESTION) == expected


async def test_an_answer_that_is_given_again_counts_no_tokens(
    house: House, embedding: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: list[str] = []
    encode = words._encode()
    monkeypatch.setattr(words, "_encode", lambda: lambda text: counted.append(text) or encode(text))
    async with served(house, embedding) as (application, anna, berta):
        first = await ask(application, anna, ANSWER)
        assert any("red barn" in text for text in counted)
        counted.clear()
        again = await ask(application, anna, ANSWER)
        assert (again["answer"], counted) == (first["answer"], [])
        await ask(application, berta, ANSWER)
        assert any("red barn" in text for text in counted)
        metrics = application.state.metrics.render().decode()
    assert "rag_context_tokens_count 3.0" in metrics
