"""Documents that other settings made, ingested again from their originals through the queue.

Nothing is searched less meanwhile: each document is replaced in one transaction, when its new version is
ready. Texts that did not change come from the embedding cache while it keeps them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from uuid import UUID

import structlog

from rag_service.domain import Identity
from rag_service.errors import RagError
from rag_service.ingest.jobs import enqueue
from rag_service.store.documents.stale import StaleIndex, count_stale, list_stale, reopen_upload
from rag_service.store.session import Database

log = structlog.get_logger(__name__)

_AT_ONCE = 500  # documents listed together


class Reingestion:
    """Finds stale documents and puts them into the queue, each as its uploader."""

    def __init__(self, database: Database, fingerprints: Mapping[str, str]):
        """
        Args:
            database: whose documents.
            fingerprints: index name → fingerprint of its settings in force.
        """
        self._database = database
        self._fingerprints = fingerprints

    async def count(self) -> list[StaleIndex]:
        """The indexes with stale documents.

        Raises:
            StoreError: the database fails.
        """
        async with self._database.transaction(None) as connection:
            return await count_stale(connection, self._fingerprints)

    async def enqueue_all(self, advance: Callable[[int], None] = lambda _: None) -> int:
        """Queue every stale document that can be made again; returns how many, `advance` counts them.

        Interrupted, it has queued a part, and the next call queues the rest.

        Raises:
            StoreError: the database fails.
        """
        queued, after = 0, None
        while True:
            async with self._database.transaction(None) as connection:
                found = await list_stale(connection, self._fingerprints, after=after, limit=_AT_ONCE)
            for document_id, user_id in found:
                taken = await self._enqueue(document_id, Identity(user_id=user_id))
                queued += taken
                advance(taken)
                after = document_id
            if len(found) < _AT_ONCE:
                return queued

    async def _enqueue(self, document_id: UUID, identity: Identity) -> bool:
        """Whether it was queued by this call; a transaction each, under the identity that may write there."""
        async with self._database.transaction(identity) as connection:
            upload = await reopen_upload(connection, identity, document_id)
            if upload is not None:
                await enqueue(connection, upload.id, identity.user_id)
        return upload is not None


def describe_stale(stale: StaleIndex) -> str:
    """For whoever has to act: what is stale, and what to do."""
    return (
        f"index {stale.index_name}: {stale.documents} documents ({stale.chunks} chunks) were made by other settings"
        " than those in force; `rag-service reingest` makes them again"
    )


async def warn_of_stale(reingestion: Reingestion) -> None:
    """Log what is stale, for whoever starts a service; a database that is not there yet is no reason to fail."""
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
