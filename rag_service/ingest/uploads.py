"""Accepts uploads: document, bytes and job in one transaction. The API calls it; a worker goes on from there."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import structlog

from rag_service.domain import Identity
from rag_service.errors import ConflictError
from rag_service.ingest.documents import document_name
from rag_service.ingest.queue import enqueue
from rag_service.readers.common.names import clean_file_name
from rag_service.store.corpora import Corpus, check_ttl, holding_corpus, read_corpus
from rag_service.store.database import Connection, Database
from rag_service.store.documents.catalogue import StoredDocument, read_document, remove_document
from rag_service.store.documents.documents import DocumentInput, find_document
from rag_service.store.documents.originals import Originals
from rag_service.store.documents.uploads import NewUpload, Upload, accept_upload, hold_upload, retry_upload
from rag_service.store.rows import database_now

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Uploads:
    """Accepts documents, moves them and retries them."""

    database: Database
    originals: Originals
    fingerprints: Mapping[str, str]  # index name → fingerprint of its settings: whether the same content needs work
    _: KW_ONLY
    default_ttl_seconds: int | None  # lifetime where neither upload nor corpus names one; None: no limit

    async def accept(
        self,
        source: DocumentInput,
        *,
        corpus_id: UUID,
        identity: Identity,
        ttl_seconds: int | None = None,
        upload_id: UUID | None = None,
        received_at: datetime | None = None,
    ) -> Upload:
        """Store document, bytes and job in one transaction.

        `ttl_seconds` is the lifetime of the document; None: that of the corpus, else the default. `upload_id` is the
        id of the upload if it is a new one. `received_at`, by the database's clock: of an upload that was kept for a
        while; a version that was received later wins.

        Raises:
            InputError: the lifetime is not positive.
            NotFoundError, PermissionDeniedError, ConflictError: the corpus is missing or not writable.
            StoreError: nothing was stored.
        """
        check_ttl(ttl_seconds)
        async with self.database.transaction(identity) as connection:
            return await self._accept(connection, source, corpus_id, identity, ttl_seconds, upload_id, received_at)

    async def move(self, document_id: UUID, *, corpus_id: UUID, identity: Identity) -> Upload:
        """Accept a stored document in another corpus, and delete it from its own, in one transaction.

        It keeps its name, what its uploader said of it, and its lifetime, if it has one.

        Raises:
            NotFoundError, PermissionDeniedError: the document, its original or the corpus is missing or not writable.
            ConflictError: it is in this corpus, which may have another document of its name.
            StoreError: nothing was changed.
        """
        async with self.database.transaction(identity) as connection:
            document = await read_document(connection, document_id)
            same = await find_document(connection, corpus_id, name=document.name)
            if same is not None and (same.id == document_id or same.content_hash != document.content_hash):
                raise ConflictError(f"The corpus already has a document named {document.name!r}.")
            source, seconds = await self._read_stored(connection, document)
            upload = await self._accept(connection, source, corpus_id, identity, seconds)
            await remove_document(connection, document_id)
        return upload

    async def hold(
        self, source: DocumentInput, identity: Identity, *, index_name: str, ttl_seconds: int | None = None
    ) -> UUID:
        """Keep a file that is in no corpus yet; returns the id of its document, which `attach` keeps.

        Raises StoreError: nothing was stored.
        """
        async with self.database.transaction(identity) as connection:
            return await self._hold(connection, source, identity, index_name, uuid4(), ttl_seconds)

    async def attach(
        self,
        document_id: UUID,
        *,
        corpus_id: UUID,
        identity: Identity,
        fields: Mapping[str, str],
        metadata: Mapping[str, Any],
    ) -> Upload:
        """Accept a file that is held in a corpus, as the same document, in one transaction.

        `fields` and `metadata` are added to what its uploader said of it. Raises as `move`.
        """
        async with self.database.transaction(identity) as connection:
            document = await read_document(connection, document_id)
            source, seconds = await self._read_stored(connection, document)
            source = replace(  # whose title may be no more than the name of the file
                source, title=None, fields={**source.fields, **fields}, metadata={**source.metadata, **metadata}
            )
            await remove_document(connection, document_id)
            return await self._accept(connection, source, corpus_id, identity, seconds, document_id=document_id)

    async def detach(self, document_id: UUID, identity: Identity, *, index_name: str) -> None:
        """Take a document out of its corpus and keep its file, as the same document, in one transaction.

        Raises as `move`.
        """
        async with self.database.transaction(identity) as connection:
            document = await read_document(connection, document_id)
            source, seconds = await self._read_stored(connection, document)
            await remove_document(connection, document_id)
            await self._hold(connection, source, identity, index_name, document_id, seconds)

    async def _read_stored(self, connection: Connection, document: StoredDocument) -> tuple[DocumentInput, int | None]:
        """A stored document as it was submitted, and the seconds until it expires."""
        source = DocumentInput(
            data=await self.originals.read(connection, document.id, document.content_hash),
            file_name=document.file_name or document.name,
            name=document.name,
            title=document.title,
            source=document.source,
            tags=document.tags,
            fields=document.fields,
            metadata=document.metadata,
        )
        if document.expires_at is None:
            return source, None
        left = document.expires_at - await database_now(connection)
        return source, max(1, int(left.total_seconds()))

    async def _hold(
        self,
        connection: Connection,
        source: DocumentInput,
        identity: Identity,
        index_name: str,
        document_id: UUID,
        ttl_seconds: int | None = None,
    ) -> UUID:
        corpus = await holding_corpus(connection, identity, index_name=index_name)
        source = replace(source, name=f"{document_id}/{clean_file_name(source.file_name)}")
        new = await self._prepare(connection, source, corpus, ttl_seconds, document_id=document_id)
        return await hold_upload(connection, self.originals, new)

    async def _accept(
        self,
        connection: Connection,
        source: DocumentInput,
        corpus_id: UUID,
        identity: Identity,
        ttl_seconds: int | None,
        upload_id: UUID | None = None,
        received_at: datetime | None = None,
        document_id: UUID | None = None,
    ) -> Upload:
        corpus = await read_corpus(connection, corpus_id)
        new = await self._prepare(
            connection, source, corpus, ttl_seconds,
            id=upload_id or uuid4(), received_at=received_at, document_id=document_id or uuid4(),
        )  # fmt: skip
        upload, is_new = await accept_upload(connection, identity, self.originals, new)
        if is_new:
            await enqueue(connection, upload.id, identity.user_id)
        log.info("upload_accepted", upload_id=str(upload.id), document_id=str(upload.document_id), new=is_new)
        return upload

    async def _prepare(
        self, connection: Connection, source: DocumentInput, corpus: Corpus, ttl_seconds: int | None, **ids: Any
    ) -> NewUpload:
        """A document as it comes into a corpus, its lifetime decided; `ids`: further fields of it."""
        fingerprint = self.fingerprints.get(corpus.index_name)
        if fingerprint is None:
            raise ConflictError(f"The corpus uses the index {corpus.index_name!r}, which is no longer defined.")
        lifetime = ttl_seconds or corpus.ttl_seconds or self.default_ttl_seconds
        now = await database_now(connection)
        expires_at = source.expires_at if lifetime is None else now + timedelta(seconds=lifetime)
        return NewUpload(
            source=replace(source, file_name=clean_file_name(source.file_name), expires_at=expires_at),
            corpus_id=corpus.id,
            name=document_name(source),
            content_hash=hashlib.sha256(source.data).hexdigest(),
            fingerprint=fingerprint,
            **ids,
        )

    async def retry(self, upload_id: UUID, identity: Identity) -> Upload:
        """Retry a failed upload. Raises as `retry_upload`."""
        async with self.database.transaction(identity) as connection:
            upload = await retry_upload(connection, upload_id)
            await enqueue(connection, upload.id, upload.user_id or identity.user_id)
        return upload
