"""A document on its way into the store: as submitted, admitted, described and passed to the pipeline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

import structlog
from llama_index.core.schema import BaseNode, Document, TransformComponent

from rag_service.domain import READER_WARNINGS, EncodedTable, read_spans
from rag_service.indices import IndexDefinition
from rag_service.ingest.chunker import Chunker
from rag_service.language.detection import detect_language
from rag_service.language.versions import find_date
from rag_service.language.words import fold
from rag_service.readers.common.names import clean_file_name
from rag_service.readers.file_reader import LANGUAGE, LONG_TABLES, MEDIA_TYPE, PROPERTIES, SPANS, TITLE, WARNINGS
from rag_service.store.database import Connection
from rag_service.store.documents.chunks import CORPUS_ID, DOCUMENT_ID, WITHOUT_VECTOR
from rag_service.store.documents.documents import DocumentInput, NewDocument, store_documents
from rag_service.tables.encoding import encode_table, read_description
from rag_service.tables.reading.extract import extract_tables
from rag_service.tables.storage import write_tables

log = structlog.get_logger(__name__)

# Of a warning about passages without a vector: passages that it names, characters of each, and of the model's message.
_SHOWN_PASSAGES, _SHOWN_CHARACTERS, _SHOWN_MESSAGE = 3, 80, 200


class Outcome(StrEnum):
    ADDED = "added"
    REPLACED = "replaced"
    UNCHANGED = "unchanged"


@dataclass(frozen=True, kw_only=True)
class Ingested:
    """The result for one document."""

    document_id: UUID
    outcome: Outcome
    chunk_count: int
    warnings: tuple[str, ...] = ()  # what of the file is not in the text


@dataclass(frozen=True, kw_only=True)
class Admitted:
    """A document to be ingested: its place in the store is known, its text is not yet."""

    source: DocumentInput
    corpus_id: UUID
    document_id: UUID  # kept when a document of the same name is replaced
    name: str  # in the corpus
    content_hash: str  # SHA-256 of the bytes, hex
    fingerprint: str  # of the ingest settings
    replaces: bool  # a document of this name is stored


def document_name(source: DocumentInput) -> str:
    """Its name in the corpus."""
    return source.name or clean_file_name(source.file_name)


def describe_document(admitted: Admitted, read: Document, index: IndexDefinition) -> NewDocument:
    """An admitted document as it is stored; the uploader's values take precedence over those of the file."""
    source, properties = admitted.source, read.metadata[PROPERTIES]
    declared = {key: str(value) for key, value in properties.items() if key in index.ingest.filter_fields}
    origin = source.source or properties.get("source")
    language: str | None = index.ingest.language
    if language == "auto":
        language = read.metadata[LANGUAGE] or detect_language(read.text)
    return NewDocument(
        id=admitted.document_id,
        corpus_id=admitted.corpus_id,
        name=admitted.name,
        title=source.title or read.metadata[TITLE],
        file_name=clean_file_name(source.file_name),
        source=None if origin is None else str(origin),
        tags=source.tags or tuple(str(tag) for tag in properties.get("tags") or ()),
        language=language,
        media_type=read.metadata[MEDIA_TYPE],
        content_hash=admitted.content_hash,
        fingerprint=admitted.fingerprint,
        text=read.text,
        fields={**declared, **source.fields},
        metadata={
            **properties,
            **source.metadata,
            **({READER_WARNINGS: read.metadata[WARNINGS]} if read.metadata[WARNINGS] else {}),
        },
        territory=_territory(properties, index),
        dated=find_date(_dated_text(read.text, properties), until=datetime.now(UTC).date()),
        size_bytes=len(source.data),
        expires_at=source.expires_at,
        tables=_tables(read),
    )


def _dated_text(text: str, properties: Mapping[str, Any]) -> str:
    """Return the text of a document with the date of its front matter as its first line."""
    return f"{properties['date']}\n{text}" if properties.get("date") else text


def report_missing_vectors(document: NewDocument, nodes: Sequence[BaseNode]) -> NewDocument:
    """Return the document with a warning that names the passages that the model could not embed, and its message."""
    causes = [node.metadata.pop(WITHOUT_VECTOR) for node in nodes if WITHOUT_VECTOR in node.metadata]
    if not causes:
        return document
    texts = [" ".join(node.get_content().split()) for node in nodes if node.embedding == []]
    shown = ", ".join(f"“{_cut(text, _SHOWN_CHARACTERS)}”" for text in texts[:_SHOWN_PASSAGES])
    more = f" and {len(texts) - _SHOWN_PASSAGES} more" if len(texts) > _SHOWN_PASSAGES else ""
    what = "1 passage has" if len(texts) == 1 else f"{len(texts)} passages have"
    warning = (
        f"{what} no vector and can only be found by words, because the embedding model failed on the text"
        f" ({_cut(causes[0], _SHOWN_MESSAGE)}): {shown}{more}. `rag-service reingest` tries again."
    )
    log.warning("passages_without_vector", document_id=str(document.id), passages=len(texts), cause=causes[0])
    warnings = [*document.metadata.get(READER_WARNINGS, ()), warning]
    return replace(document, metadata={**document.metadata, READER_WARNINGS: warnings})


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[:length].rstrip()}…"


def _tables(read: Document) -> tuple[EncodedTable, ...]:
    long_tables: tuple[EncodedTable, ...] = read.metadata.get(LONG_TABLES, ())
    done = {read_description(table).sheet for table in long_tables}
    spans = [span for span in read_spans(read.metadata[SPANS]) if not long_tables or span.location.sheet not in done]
    return (*map(encode_table, extract_tables(read.text, spans)), *long_tables)


def _territory(metadata: Mapping[str, Any], index: IndexDefinition) -> str | None:
    """The territory in which a document is valid; None: everywhere."""
    declared = metadata.get(index.ingest.territory_field or "")
    if declared is None:
        return None
    wanted = fold(str(declared))
    for territory in index.territories:
        if wanted in {fold(name) for name in (territory.name, *territory.aliases, *territory.cities)}:
            return territory.name
    return None


def to_pipeline(document: NewDocument, read: Document, transformations: Sequence[TransformComponent]) -> Document:
    """The document for its pipeline. Only our chunker gets the spans: others would count them as text."""
    metadata = {
        CORPUS_ID: str(document.corpus_id),
        DOCUMENT_ID: str(document.id),
        LANGUAGE: document.language,
        TITLE: document.title,
    }
    if any(isinstance(component, Chunker) for component in transformations):
        metadata[SPANS] = read.metadata[SPANS]
    hidden = [key for key in metadata if key != TITLE]
    return Document(
        id_=str(document.id),
        text=document.text,
        metadata=metadata,
        excluded_embed_metadata_keys=hidden,
        excluded_llm_metadata_keys=hidden,
    )


async def write_document(connection: Connection, document: NewDocument, nodes: Sequence[BaseNode]) -> None:
    """Store a document with its chunks and tables inside the caller's transaction, replacing an earlier version.

    Raises PermissionDeniedError if the identity may not write to the corpus.
    """
    await write_documents(connection, [(document, nodes)])


async def write_documents(connection: Connection, documents: Sequence[tuple[NewDocument, Sequence[BaseNode]]]) -> None:
    """Store several documents of one corpus as `write_document` does one."""
    await store_documents(connection, documents)
    for document, _ in documents:
        await write_tables(connection, document.id, document.corpus_id, document.tables)
