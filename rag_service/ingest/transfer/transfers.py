"""Exports and imports of a process: built from its parts, a few at a time."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import BinaryIO
from uuid import UUID

from rag_service.domain import Identity
from rag_service.errors import InputError, NoSpaceError
from rag_service.indices import IndexDefinition
from rag_service.ingest.ingestor import Ingestor
from rag_service.ingest.transfer.archive import open_unnamed
from rag_service.ingest.transfer.exporting import CorpusExport, OnProgress
from rag_service.ingest.transfer.importing import CorpusImport, Imported, ImportOptions
from rag_service.settings import Settings
from rag_service.store.documents.originals import Originals
from rag_service.turns import Turns

MEGABYTE = 2**20
_AT_ONCE = 3  # of all users, since each takes a connection and space on the disk
_WAITING = 9  # users who wait for one of them to end
_PATIENCE = 60.0  # seconds
_RECEIVING = 20  # files that arrive, each of another user; they wait in temporary files


@dataclass(frozen=True)
class Transfers:
    """What exports and imports corpora."""

    exports: CorpusExport
    imports: CorpusImport
    _: KW_ONLY
    folder: Path  # for temporary files, which have no name; made when the first is
    turns: Turns = field(
        default_factory=lambda: Turns(
            "transfer", limit=_AT_ONCE, share=1, queue=_WAITING, per_owner=1, patience=_PATIENCE
        ),
        init=False,
    )
    receiving: Turns = field(default_factory=lambda: Turns("import_body", limit=_RECEIVING, per_owner=1), init=False)

    async def export(
        self, corpus_id: UUID, identity: Identity, on_progress: OnProgress = lambda *_: None
    ) -> AsyncGenerator[bytes]:
        """A corpus as a file, in pieces. Raises as `Turns.take`, and as `CorpusExport.write`."""
        pieces = self.exports.write(corpus_id, identity, on_progress)
        async with self.turns.take(identity.user_id), aclosing(pieces):
            async for piece in pieces:
                yield piece

    async def read_file(
        self, file: Path, identity: Identity, options: ImportOptions, on_progress: OnProgress = lambda *_: None
    ) -> Imported:
        """Import a file of this machine. Raises InputError if it cannot be read, else as `CorpusImport.read`."""
        try:
            with file.open("rb") as opened:
                return await self.imports.read(opened, identity, options, on_progress)
        except OSError as error:
            raise NoSpaceError.of(error) or InputError(f"{file} cannot be read: {error.strerror}.") from error

    def open_file(self) -> BinaryIO:
        """An empty file that is gone once it is closed, or the process has ended in whatever way."""
        return open_unnamed(self.folder)


def build_transfers(
    settings: Settings, ingestor: Ingestor, originals: Originals, indices: Mapping[str, IndexDefinition]
) -> Transfers:
    folder = settings.database.data_dir / "transfers"
    return Transfers(
        CorpusExport(ingestor.database, originals, model=ingestor.model, dimension=ingestor.dimension, folder=folder),
        CorpusImport(
            ingestor.database,
            originals,
            ingestor.embedding,
            indices,
            model=ingestor.model,
            dimension=ingestor.dimension,
            max_document=settings.uploads.max_mb * MEGABYTE,
            default_ttl_seconds=settings.uploads.ttl_seconds,
            folder=folder,
        ),
        folder=folder,
    )
