"""Accepts an upload and dies at once, as an API killed right after its 202.

`python -m tests.integration.tenancy.accept_process CONNINFO USER_ID CORPUS_ID`
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from uuid import UUID

from rag_service.definitions import load_index
from rag_service.domain import Identity
from rag_service.ingest.jobs import Uploads
from rag_service.ingest.pipeline import DocumentInput
from rag_service.ingest.stages import EmbeddingModel
from rag_service.store.documents.originals import DatabaseOriginals
from rag_service.store.session import Database
from tests.conftest import FakeEmbedding
from tests.integration.tenancy.conftest import INDEX


async def main(conninfo: str, user_id: str, corpus_id: str) -> None:
    database = Database(conninfo, pool_size=1, timeout=5)
    await database.open()
    model = EmbeddingModel(embedding=FakeEmbedding(model_name="fake"), name="fake", dimension=384)
    uploads = Uploads(database, DatabaseOriginals(), model, {INDEX: load_index(INDEX)}, default_ttl_seconds=None)
    document = DocumentInput(data=b"Llamas live in the Andes.", file_name="llamas.txt")
    await uploads.accept(document, corpus_id=UUID(corpus_id), identity=Identity(user_id=UUID(user_id)))
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
