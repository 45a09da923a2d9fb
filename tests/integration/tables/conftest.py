"""A service whose files are ingested once for a module, and questions over some of them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from evals.sets.questions import read_set
from rag_service.components import Components
from rag_service.domain import LOCAL_ADMIN, Answer, Filters, ProofMethod
from rag_service.retrieval.question import Question
from rag_service.store.documents.documents import DocumentInput
from rag_service.store.embedded import EmbeddedServer
from tests.conftest import cloned_database, make_fake_embedding
from tests.integration.answers.conftest import opened_service


@dataclass(frozen=True, kw_only=True)
class Library:
    """A service with files that no test changes."""

    service: Components
    documents: Mapping[str, UUID]  # by file name

    async def ask(self, question: str, *files: str, **options: Any) -> Answer:
        """The answer from these files alone; without any, from all."""
        chosen = Filters(document_ids=tuple(self.documents[name] for name in files))
        query = Question(question, identity=LOCAL_ADMIN, filters=chosen, recorded=False, **options)
        return await self.service.engine.answer(query)


@asynccontextmanager
async def open_library(
    postgres: EmbeddedServer, files: Mapping[str, bytes | str], **settings: Any
) -> AsyncIterator[Library]:
    """A library in a database of its own; keywords are settings."""
    with cloned_database(postgres) as server:
        async with opened_service(server, make_fake_embedding(), **settings) as service:
            documents = {}
            for name, content in files.items():
                data = content.encode() if isinstance(content, str) else content
                done = await service.ingest(DocumentInput(data=data, file_name=name), LOCAL_ADMIN)
                documents[name] = done.document_id
            yield Library(service=service, documents=documents)


def files_of(set_name: str, *names: str) -> dict[str, bytes]:
    """Files of an eval set: name → content; without names, all."""
    asked = read_set(set_name)
    return {name: asked.read_file(name) for name in names or asked.file_names}


def is_computed(answer: Answer) -> bool:
    """Return whether a value was computed, also one that is not certain and only shown as a place."""
    cited = any(citation.method is ProofMethod.COMPUTED for citation in answer.citations)
    return cited or any(place.formula for place in answer.places)
