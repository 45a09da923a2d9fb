"""Documents in batches: small ones that have come while others were in work go together."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterable
from dataclasses import dataclass, field

from rag_service.ingest.documents import document_name
from rag_service.store.documents.documents import DocumentInput

# Of a batch; other sizes were not compared.
MOST_FILES = 32
MOST_BYTES = 64_000  # a larger file goes alone


@dataclass
class Batches:
    """What has come and is not yet taken; no more of it than the next batch takes."""

    _came: deque[DocumentInput] = field(default_factory=deque)
    _changed: asyncio.Condition = field(default_factory=asyncio.Condition)
    _ended: bool = False

    async def fill(self, sources: AsyncIterable[DocumentInput]) -> None:
        """Take sources as far as there is room, to their end."""
        try:
            async for source in sources:
                async with self._changed:
                    await self._changed.wait_for(lambda: _goes_with(source, self._came))  # noqa: B023 - not kept
                    self._came.append(source)
                    self._changed.notify_all()
        finally:
            self._ended = True
            async with self._changed:
                self._changed.notify_all()

    async def take(self) -> list[DocumentInput]:
        """Wait for the next batch: at least one document, of a name only one; nothing at the end."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._came or self._ended)
            batch = list(self._came)
            self._came.clear()
            self._changed.notify_all()
            return batch


def _goes_with(source: DocumentInput, batch: deque[DocumentInput]) -> bool:
    """Whether a document may be in a batch with others."""
    if not batch:
        return True
    size = sum(len(one.data) for one in batch) + len(source.data)
    name = document_name(source)
    return len(batch) < MOST_FILES and size <= MOST_BYTES and all(document_name(one) != name for one in batch)
