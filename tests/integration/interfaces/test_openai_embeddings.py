"""Embeddings and models as the official client sees them, over a real socket."""

from __future__ import annotations

import base64
import struct
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any
from uuid import UUID

import openai
import pytest

from rag_service.answering.drafts.events import AnswerEvent
from rag_service.api.openai.fields import Conversation
from rag_service.api.openai.routes import KnowledgeModel
from rag_service.domain import Identity
from tests.integration.interfaces.openai_service import (
    ASKED,
    OTHER,
    Serve,
    Served,
    serve,
    shared,
)
from tests.unit.api.samples import EVENTS, QUESTION, Script

__all__ = ["serve", "shared"]


async def _embed(texts: Sequence[str]) -> list[list[float]]:
    return [[float(len(text)), 0.5] for text in texts]


@pytest.fixture
def embedder(serve: Serve) -> Served:
    return serve(embed=_embed, embedding_dimension=2)


def test_texts_are_embedded_in_their_order(embedder: Served) -> None:
    create = embedder.client.embeddings.create
    for form in ({}, {"encoding_format": "float"}, {"encoding_format": "base64"}):
        reply = create(model="multilingual-e5-small", input=["a", "abc"], dimensions=2, **form)  # type: ignore[arg-type]
        vectors = [item.embedding for item in reply.data]
        if form.get("encoding_format") == "base64":  # asked for by name, the client leaves it packed
            vectors = [struct.unpack("<2f", base64.b64decode(vector)) for vector in vectors]  # type: ignore[arg-type,misc]
        assert [list(vector) for vector in vectors] == [[1.0, 0.5], [3.0, 0.5]]
    assert create(model="multilingual-e5-small", input="abc").data[0].embedding == [3.0, 0.5]


@pytest.mark.parametrize(
    ("param", "fields"),
    [
        ("input", {"input": []}),
        ("input", {"input": ["a", " "]}),
        ("input", {"input": [1, 2]}),
        ("input", {"input": ["a"] * 257}),
        ("input", {"input": "a" * 50_001}),
        ("dimensions", {"input": "a", "dimensions": 5}),
        ("model", {"input": "a", "model": "text-embedding-3-small"}),
    ],
)
def test_what_cannot_be_embedded_is_refused_by_name(embedder: Served, param: str, fields: dict[str, Any]) -> None:
    with pytest.raises((openai.BadRequestError, openai.NotFoundError)) as caught:
        embedder.client.embeddings.create(**{"model": "multilingual-e5-small", **fields})
    assert caught.value.param == param


def test_the_knowledge_model_is_listed_and_found(shared: Served) -> None:
    assert [model.id for model in shared.client.models.list()] == ["rag-service", "multilingual-e5-small"]
    model = shared.client.models.retrieve("rag-service")
    assert (model.id, model.object, model.owned_by) == ("rag-service", "model", "rag-service")


def test_agents_are_models_of_those_who_may_use_them(serve: Serve) -> None:
    script, asked = Script(), list[tuple[Conversation, Identity]]()

    async def answer(conversation: Conversation, identity: Identity) -> AsyncIterator[AnswerEvent]:
        asked.append((conversation, identity))
        for event in EVENTS:
            yield event  # type: ignore[misc]  # the sample has no pauses

    async def authenticate(headers: Mapping[str, str]) -> Identity:
        return OTHER if headers["authorization"] == "Bearer other" else Identity(user_id=UUID(int=1))

    async def list_models(_: Any, identity: Identity) -> Sequence[KnowledgeModel]:
        return [KnowledgeModel(id="hr/benefits", answer=answer, created=5)] if identity == OTHER else []

    script.authenticate = authenticate  # type: ignore[method-assign]  # a scripted one
    served = serve(script, list_models)
    member = served.client.with_options(api_key="other")
    assert [model.id for model in member.models.list()] == ["rag-service", "hr/benefits", "multilingual-e5-small"]
    assert member.models.retrieve("hr/benefits").created == 5
    said: list[Any] = [{"role": "assistant", "content": "Yes."}, {"role": "user", "content": "And in Lyon?"}]
    assert member.chat.completions.create(model="hr/benefits", messages=ASKED + said).model == "hr/benefits"
    ((conversation, identity),) = asked
    assert (identity, conversation.question.text, len(script.queries)) == (OTHER, "And in Lyon?", 0)
    assert [(turn.role, turn.content) for turn in conversation.turns] == [("user", QUESTION), ("assistant", "Yes.")]
    assert [model.id for model in served.client.models.list()] == ["rag-service", "multilingual-e5-small"]
    with pytest.raises(openai.NotFoundError) as caught:
        served.ask(model="hr/benefits")
    assert (caught.value.code, caught.value.param) == ("model_not_found", "model")
