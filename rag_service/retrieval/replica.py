"""Found on a read replica where it shows what the primary does, else on the primary.

Whatever the replica does, a search loses no more than time to it: it is repeated on the primary, once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import psycopg
import structlog

from rag_service.domain import Identity
from rag_service.errors import ConfigurationError, SearchTimeoutError, StoreError
from rag_service.retrieval.found import Found
from rag_service.retrieval.query import PassageRetriever
from rag_service.retrieval.question import Question
from rag_service.store.database import Database
from rag_service.store.replication.replica import Replica, ReplicaBehindError

log = structlog.get_logger(__name__)

# Who served a search: the replica, or the primary because the replica was behind, failed just now, or is left alone.
Outcome = Literal["replica", "behind", "failed", "down"]


class ReplicatedRetriever(PassageRetriever):
    """Takes the place of a retriever on the primary alone."""

    def __init__(
        self,
        primary: PassageRetriever,
        replica: Replica,
        search_on: Callable[[Database], PassageRetriever],
        *,
        count: Callable[[Outcome], None],
        identity: Identity | None = None,
    ):
        """
        Args:
            primary: searches on the primary.
            replica: tried first.
            search_on: makes a retriever on a view of the replica; cheap enough for every search.
            count: receives who served each search.
            identity: as in `PassageRetriever`.
        """
        super().__init__(identity=identity)
        self._primary = primary
        self._replica = replica
        self._search_on = search_on
        self._count = count

    async def search(self, question: Question) -> Found:
        """As `PassageRetriever.search`."""
        outcome: Outcome = "down"
        if self._replica.up:
            view = self._replica.at(await self._replica.position(question.identity, question.filters.corpus_ids))
            try:
                found = await self._replica.run(self._search_on(view).search(question), view)
            except ReplicaBehindError:
                outcome = "behind"
            except (StoreError, ConfigurationError, SearchTimeoutError, psycopg.Error) as error:
                # A failure of the query itself repeats on the primary and is reported from there.
                outcome = "failed"
                log.warning("search_repeated", exc_info=error)
                if isinstance(error, StoreError | ConfigurationError):
                    self._replica.stop_using(error)
            else:
                self._count("replica")
                return found
        self._count(outcome)
        return await self._primary.search(question)
