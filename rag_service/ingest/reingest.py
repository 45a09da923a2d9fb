"""Re-ingestion of stale documents from their originals.

Stale are documents that were ingested with other settings than the current ones, or have passages without a vector.
Everything stays searchable: each document is replaced in one transaction when its new version is ready. But vectors of
another embedding model match nothing, so the operator is warned. Embeddings of unchanged texts come from the cache.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from uuid import UUID

import structlog

from rag_service.domain import Identity
from rag_service.errors import RagError
from rag_service.ingest.queue import enqueue
from rag_service.store.database import Database
from rag_service.store.documents.uploads import reopen_upload
from rag_service.store.rows import fetch_all

log = structlog.get_logger(__name__)

_BATCH = 500  # documents per query


@dataclass(frozen=True, kw_only=True)
class StaleIndex:
    """What of an index is stale, in all corpora of all users."""

    index_name: str
    documents: int
    chunks: int


class Reingestion:
    """Finds stale documents and enqueues them, each as its uploader."""

    def __init__(self, database: Database, fingerprints: Mapping[str, str]):
        self._database = database
        self._fingerprints = json.dumps(dict(fingerprints))  # index name → fingerprint of its current settings

    async def count(self) -> list[StaleIndex]:
        """The indexes with stale documents, by name."""
        query = "SELECT index_name, documents, chunks FROM rag.count_stale(%s)"
        async with self._database.transaction(None) as connection:
            return list(await fetch_all(connection, StaleIndex, query, [self._fingerprints]))

    async def enqueue_all(self, advance: Callable[[int], None] = lambda _: None) -> int:
        """Enqueue every stale document that has an original; returns their number and reports it to `advance`.

        An interrupted run can be repeated.
        """
        queued, after = 0, UUID(int=0)
        query = "SELECT document_id, user_id FROM rag.list_stale(%s, %s, %s)"  # user_id: as whom to ingest it
        while True:
            async with self._database.transaction(None) as connection:
                cursor = await connection.execute(query, [self._fingerprints, after, _BATCH])
                found = await cursor.fetchall()
            for document_id, user_id in found:
                taken = await self._enqueue(document_id, Identity(user_id=user_id))
                queued += taken
                advance(taken)
                after = document_id
            if len(found) < _BATCH:
                return queued

    async def _enqueue(self, document_id: UUID, identity: Identity) -> bool:
        """Whether this call enqueued it, in a transaction under the identity that may write there."""
        async with self._database.transaction(identity) as connection:
            upload = await reopen_upload(connection, identity, document_id)
            if upload is not None:
                await enqueue(connection, upload.id, identity.user_id)
        return upload is not None


def describe_stale(stale: StaleIndex) -> str:
    """A message for the operator."""
    return (
        f"index {stale.index_name}: {stale.documents} documents ({stale.chunks} chunks) were made with other settings"
        " than the current ones or have passages without a vector; run `rag-service reingest` to update them"
    )


async def warn_of_stale(reingestion: Reingestion) -> None:
    """Log stale documents at start; an unreachable database is not an error here."""
    try:
        stale = await reingestion.count()
    except RagError as error:
        log.debug("stale_documents_not_counted", exc_info=error)
        return
    for index in stale:
        log.warning(
            "documents_stale",
            index=index.index_name,
            documents=index.documents,
            chunks=index.chunks,
            detail=describe_stale(index),
        )
