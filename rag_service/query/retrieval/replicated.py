"""Retrieval on a read replica where it shows what the primary does, else on the primary.

Whatever the replica does, a search loses no more than time to it: it is repeated on the primary, once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import psycopg
import structlog

from rag_service.domain import Filters, Identity
from rag_service.errors import ConfigurationError, StoreError
from rag_service.query.retrieval.retriever import Mode, Retrieval, Retriever
from rag_service.store.replication.replica import Replica, ReplicaBehindError
from rag_service.store.session import Database

log = structlog.get_logger(__name__)

# Who served a search: the replica, or the primary because the replica was behind, failed just now, or is left alone.
Outcome = Literal["replica", "behind", "failed", "down"]


class ReplicatedRetriever(Retriever):
    """Stands where a retriever on the primary alone stands."""

    def __init__(
        self,
        primary: Retriever,
        replica: Replica,
        search_on: Callable[[Database], Retriever],
        *,
        count: Callable[[Outcome], None],
    ):
        """
        Args:
            primary: searches on the primary.
            replica: tried first.
            search_on: makes a retriever on a view of the replica; cheap enough for every search.
            count: is told who served each search.
        """
        self._primary = primary
        self._replica = replica
        self._search_on = search_on
        self._count = count

    async def search(
        self,
        question: str,
        *,
        identity: Identity,
        filters: Filters,
        limit: int,
        mode: Mode = "hybrid",
        alpha: float | None = None,
    ) -> Retrieval:
        """As `Retriever.search`."""
        outcome: Outcome = "down"
        if self._replica.up:
            view = self._replica.at(await self._replica.position(identity, filters.corpus_ids))
            search = self._search_on(view).search(
                question, identity=identity, filters=filters, limit=limit, mode=mode, alpha=alpha
            )
            try:
                found = await self._replica.run(search, view)
            except ReplicaBehindError:
                outcome = "behind"
            except (StoreError, ConfigurationError) as error:
                outcome = "failed"
                log.warning("search_repeated", exc_info=error)
                self._replica.leave_alone(error)
            except psycopg.Error as error:  # the primary will tell whether it was the question's fault
                outcome = "failed"
                log.warning("search_repeated", exc_info=error)
            else:
                self._count("replica")
                return found
        self._count(outcome)
        return await self._primary.search(
            question, identity=identity, filters=filters, limit=limit, mode=mode, alpha=alpha
        )
