"""An owner with one of everything, and everybody who might want to see it."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

import jwt

from rag_service.domain import Identity
from rag_service.store.accounts.agents import AgentSpec, assign_corpus, create_agent
from rag_service.store.accounts.answers import Thumbs, give_feedback
from rag_service.store.accounts.conversations import add_message, create_conversation, create_project
from rag_service.store.accounts.keys import Scope, create_key, revoke_key
from rag_service.store.corpora import Corpus
from rag_service.store.documents.documents import DocumentInput
from rag_service.store.documents.sources import add_source
from rag_service.store.documents.uploads import Upload, claim_upload
from rag_service.store.rows import fetch_value
from tests.integration.tenancy.conftest import ADMIN, ADVICE_INDEX, House
from tests.integration.tenancy.web import SECRET, new_key

CANARY = "xyzzyquartz"  # stands in everything that is the owner's, and in no request
QUESTION = "Where do llamas sleep at noon?"
TEXT = f"""Llamas sleep at noon in the {CANARY} barn.

How much does a {CANARY} kayak cost per day?
A {CANARY} kayak costs 35 euros per day."""
ARTICLE = f"""---
title: Where llamas sleep
article_id: {CANARY}-1
---
# Where llamas sleep

## Required data

| Field | Group | Description | Why needed | Type | Required |
|---|---|---|---|---|---|
| {CANARY} barn | participant | Where llamas sleep at noon | To find them | text | yes |

## Decision guide

- If llamas sleep at noon, where they do is the {CANARY} barn.
"""

_UNFILTERED: dict[str, Any] = {
    "corpusIds": [], "documentIds": [], "fileName": None, "source": None, "tags": [], "fields": {}, "chunkTypes": [],
    "territory": None,
}  # fmt: skip
RECORD: dict[str, Any] = {  # of the owner's answer, as far as a replay reads it
    "question": QUESTION, "answer": TEXT, "request": {"topK": 5, "threshold": None, "filters": _UNFILTERED},
    "chunks": [], "decision": "can_proceed", "confidence": 0.9, "verification": {},
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class World:
    """Objects of an owner, and credentials of everybody."""

    owner: Identity
    ids: Mapping[str, Any]  # UUIDs, but for `chunk_id`
    file_name: str
    source: str
    tag: str
    credentials: Mapping[str, Mapping[str, str]]  # who → headers

    @property
    def names(self) -> tuple[str, ...]:
        """What the owner's document can be filtered by, besides its ids."""
        return self.file_name, self.source, self.tag

    def fill(self, path: str) -> str:
        """A path of the route table with the owner's objects in it."""
        for name, value in self.ids.items():
            path = path.replace(f"{{{name}}}", str(value))
        return path


async def make_world(house: House) -> World:
    mark = uuid4().hex[:8]
    owner, stranger = await house.user(f"owner-{mark}"), await house.user(f"stranger-{mark}")
    corpus = await house.corpus(owner, f"{CANARY} notes")
    file_name, tag = f"{CANARY}-{mark}.txt", f"{CANARY} tag {mark}"
    document = DocumentInput(data=TEXT.encode(), file_name=file_name, source=f"shelf {mark}", tags=(tag,))
    upload = await _index(house, owner, corpus, document)
    articles = await house.corpus(owner, f"{CANARY} articles", index_name=ADVICE_INDEX)
    await _index(house, owner, articles, DocumentInput(data=ARTICLE.encode(), file_name="article.md"))
    async with house.database.transaction(owner) as connection:
        query = "SELECT node_id FROM data_chunks WHERE document_id = %s"
        chunk_id = await fetch_value(connection, query, [upload.document_id])
    ids = await _make_objects(house, owner, corpus, mark) | {
        "chunk_id": chunk_id,
        "corpus_id": corpus.id,
        "articles_id": articles.id,
        "document_id": upload.document_id,
        "upload_id": upload.id,
        "user_id": stranger.user_id,
    }
    token = {"sub": str(owner.user_id), "exp": int(time.time()) - 60}
    everyday = {Scope.READ, Scope.WRITE}
    credentials = {
        "anonymous": {},
        "revoked": {"X-API-Key": await _revoked_key(house, owner)},
        "expired": {"Authorization": f"Bearer {jwt.encode(token, SECRET)}"},
        "reader": {"X-API-Key": await new_key(house, owner, {Scope.READ})},
        "stranger": {"X-API-Key": await new_key(house, stranger, everyday)},
        "owner": {"X-API-Key": await new_key(house, owner, everyday)},
        "admin": {"X-API-Key": await new_key(house, ADMIN)},
    }
    return World(owner=owner, ids=ids, file_name=file_name, source=f"shelf {mark}", tag=tag, credentials=credentials)


async def _index(house: House, owner: Identity, corpus: Corpus, document: DocumentInput) -> Upload:
    """As a worker does, in milliseconds."""
    upload = await house.uploads.accept(document, corpus_id=corpus.id, identity=owner)
    async with house.database.transaction(owner) as connection:
        claim = await claim_upload(connection, upload.id)
    assert claim is not None
    assert await house.job().process(claim, owner)
    return upload


async def _make_objects(house: House, owner: Identity, corpus: Corpus, mark: str) -> dict[str, UUID]:
    async with house.database.transaction(ADMIN) as connection:
        agent = await create_agent(connection, AgentSpec(name=f"helper-{mark}", allows_personal_corpus=True))
    answer_id = uuid4()
    async with house.database.transaction(owner) as connection:
        await assign_corpus(connection, agent.id, corpus.id)
        project = await create_project(connection, owner, name=CANARY)
        chat = await create_conversation(connection, owner, agent_id=agent.id, project_id=project.id, title=CANARY)
        await connection.execute(
            "INSERT INTO answers (id, user_id, record) VALUES (%s, %s, %s)",
            [answer_id, owner.user_id, json.dumps(RECORD)],
        )
        await add_message(connection, owner, chat.id, role="assistant", content=TEXT, answer_id=answer_id)
        await give_feedback(connection, owner, answer_id, thumbs=Thumbs.UP)
        key, _ = await create_key(connection, user_id=owner.user_id, name="k", scopes={Scope.READ})
        source = await add_source(
            connection, owner, corpus_id=corpus.id, target=f"https://example.org/{CANARY}", depth=0, every_seconds=900
        )
    return {
        "agent_id": agent.id,
        "project_id": project.id,
        "conversation_id": chat.id,
        "key_id": key.id,
        "answer_id": answer_id,
        "source_id": source.id,
    }


async def _revoked_key(house: House, owner: Identity) -> str:
    async with house.database.transaction(owner) as connection:
        key, secret = await create_key(connection, user_id=owner.user_id, name="old", scopes={Scope.READ})
        await revoke_key(connection, key.id)
    return secret
