"""Accepts an upload and dies at once, as an API killed right after its 202.

`python -m tests.integration.tenancy.accept_process CONNINFO USER_ID CORPUS_ID`
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from uuid import UUID

from rag_service.domain import Identity
from rag_service.indices import load_index
from rag_service.ingest.uploads import Uploads
from rag_service.store.database import Database
from rag_service.store.documents.documents import DocumentInput
from rag_service.store.documents.originals import Originals
from tests.integration.tenancy.conftest import INDEX


async def main(conninfo: str, user_id: str, corpus_id: str) -> None:
    database = Database(conninfo, pool_size=1, timeout=5)
    await database.open()
    fingerprint = load_index(INDEX).fingerprint(embedding_model="fake", dimension=384)
    uploads = Uploads(database, Originals(), {INDEX: fingerprint}, default_ttl_seconds=None)
    document = DocumentInput(data=b"Llamas live in the Andes.", file_name="llamas.txt")
    await uploads.accept(document, corpus_id=UUID(corpus_id), identity=Identity(user_id=UUID(user_id)))
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
