"""Puts texts into a test database the way ingestion does, without parser and pipeline."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any
from uuid import UUID, uuid4

import psycopg
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.schema import TextNode

from rag_service.domain import LOCAL_ADMIN, CorpusKind, Identity
from rag_service.store.corpora import create_corpus
from rag_service.store.database import Database
from rag_service.store.documents.chunks import (
    CHAR_END,
    CHAR_START,
    CHUNK_INDEX,
    CHUNK_TYPE,
    CORPUS_ID,
    DOCUMENT_ID,
    LANGUAGE,
)
from rag_service.store.documents.documents import NewDocument, store_document

ADMIN = LOCAL_ADMIN


async def make_corpus(database: Database, name: str = "documents", *, identity: Identity = ADMIN) -> UUID:
    """A personal corpus of the identity."""
    async with database.transaction(identity) as connection:
        corpus = await create_corpus(connection, identity, name=name, kind=CorpusKind.PERSONAL, index_name="general")
        return corpus.id


async def store_texts(
    database: Database,
    corpus_id: UUID,
    texts: Sequence[str],
    embedding: BaseEmbedding,
    *,
    identity: Identity = ADMIN,
    document_id: UUID | None = None,
    language: str = "en",
    chunk_type: str | None = None,
    **described: Any,
) -> UUID:
    """One document whose chunks are the texts; keywords are fields of NewDocument. Returns its id."""
    document_id = document_id or uuid4()
    whole = "\n".join(texts)
    nodes, start = [], 0
    for index, text in enumerate(texts):
        metadata = {
            CORPUS_ID: str(corpus_id), DOCUMENT_ID: str(document_id), LANGUAGE: language, CHUNK_INDEX: index,
            CHUNK_TYPE: chunk_type, CHAR_START: start, CHAR_END: start + len(text),
        }  # fmt: skip
        start += len(text) + 1
        nodes.append(
            TextNode(
                id_=f"{document_id}:{index}:{uuid4().hex[:6]}",
                text=text,
                metadata=metadata,
                excluded_embed_metadata_keys=list(metadata),
                embedding=embedding.get_text_embedding(text),
            )
        )
    document = NewDocument(
        id=document_id,
        corpus_id=corpus_id,
        name=described.pop("name", str(document_id)),
        title=described.pop("title", ""),
        content_hash=hashlib.sha256(f"{document_id} {whole}".encode()).hexdigest(),  # an original of its own
        fingerprint="test",
        text=whole,
        language=language,
        **described,
    )
    async with database.transaction(identity) as connection:
        await store_document(connection, document, nodes)
    return document_id


def add_user(owner_conninfo: str, name: str) -> Identity:
    """Another user, made by the owner of the database."""
    with psycopg.connect(owner_conninfo) as connection:
        row = connection.execute(
            "INSERT INTO rag.users (name, role) VALUES (%s, 'user') RETURNING id", [name]
        ).fetchone()
    assert row is not None
    return Identity(user_id=row[0])
