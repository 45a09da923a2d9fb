"""What the members of an exported corpus hold: docs/reference/export-format.md describes them.

Whatever is decoded here may come from an enemy: types, sizes and references are checked before anything is stored.
"""

from __future__ import annotations

import base64
import re
import string
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from itertools import pairwise
from typing import Annotated, Any, Literal, TypeVar
from uuid import UUID, uuid5

import msgspec
import numpy as np
from llama_index.core.schema import BaseNode, MetadataMode, NodeRelationship, RelatedNodeInfo, TextNode
from msgspec import Meta, Struct

from rag_service.domain import READER_WARNINGS, Span, read_spans, write_span
from rag_service.errors import ArchiveError, ArchiveVersionError
from rag_service.store.documents.chunks import (
    CHAR_END,
    CHAR_START,
    CHUNK_INDEX,
    CHUNK_TYPE,
    CORPUS_ID,
    DOCUMENT_ID,
    LANGUAGE,
    REQUIRED_KEYS,
    SPANS,
)
from rag_service.tables.encoding import TableDescription

FORMAT = "rag-service corpus"
VERSION = 1

MANIFEST, CORPUS = "manifest.json", "corpus.json"

_Kind = TypeVar("_Kind", bound=Struct)
_Hash = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z")]  # SHA-256
_Count = Annotated[int, Meta(ge=0, lt=2**31)]
_Name = Annotated[str, Meta(min_length=1, max_length=3_000)]
_Moment = Annotated[datetime, Meta(tz=True)]
_MAX_TEMPLATE = 500  # characters
_MAX_WRITTEN = 1_000_000  # characters that the templates of a node add to its metadata, one for each key
_MAX_DIGITS = 1_000  # of a number in a table; PostgreSQL reckons with a hundred times as many
_MAX_CHUNK = 20_000  # characters of a stored chunk: a question over twenty takes the event loop .06 s at a time
_MAX_SPANS = 100_000  # places of a chunk
_MAX_ENTRIES = 10_000  # of a list or an object in metadata
_MAX_DEPTH = 32  # of metadata
_NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?", re.ASCII)
_Warnings = list[Annotated[str, Meta(max_length=10_000)]]
_WORD_BYTES = 14  # of a word's place, see `word_boxes`


class EmbeddingForm(Struct, kw_only=True, frozen=True):
    """What the vectors were made with."""

    model: str  # and the prefix of passages, if one is added
    dimension: Annotated[int, Meta(ge=1, le=16_000)]


class Counts(Struct, kw_only=True, frozen=True):
    """What the file holds."""

    documents: _Count
    originals: _Count
    chunks: _Count
    tables: _Count


class Manifest(Struct, kw_only=True, frozen=True):
    """The first member. Its `format` and `version` never change their place."""

    format: str
    version: int
    written_at: datetime  # the moment of the snapshot
    written_by: str  # version of the service
    embedding: EmbeddingForm
    counts: Counts


class SourceForm(Struct, kw_only=True, frozen=True):
    """A source, without what signs in to it."""

    target: Annotated[str, Meta(max_length=2_000)]
    depth: int
    every_seconds: int


class CorpusForm(Struct, kw_only=True, frozen=True):
    """The settings of the corpus."""

    name: Annotated[str, Meta(min_length=1, max_length=200)]
    kind: Literal["global", "personal"]
    index: Annotated[str, Meta(min_length=1, max_length=200)]
    active: bool
    ttl_seconds: Annotated[int, Meta(ge=1, lt=2**31)] | None
    shared: bool
    groups: Annotated[tuple[Annotated[str, Meta(min_length=1, max_length=200)], ...], Meta(max_length=100)]
    sources: Annotated[tuple[SourceForm, ...], Meta(max_length=1_000)]


class DocumentForm(Struct, kw_only=True, frozen=True):
    """A document: what is known of it, and which members follow."""

    id: _Name  # where it was; the chunks refer to it
    name: _Name
    title: str
    file_name: str | None
    source: str | None
    tags: Annotated[tuple[str, ...], Meta(max_length=_MAX_ENTRIES)]
    language: Annotated[str, Meta(max_length=100)] | None
    media_type: str | None
    content_hash: _Hash
    fingerprint: Annotated[str, Meta(max_length=100)]  # of the settings that made its chunks; "": it has none yet
    fields: Annotated[dict[str, str], Meta(max_length=_MAX_ENTRIES)]
    metadata: dict[str, Any]
    territory: str | None
    dated: date | None
    size_bytes: Annotated[int, Meta(ge=0, lt=2**62)]
    expires_at: _Moment | None
    created_at: _Moment
    updated_at: _Moment
    has_original: bool
    chunks: _Count
    tables: _Count

    def __post_init__(self) -> None:
        """Raises OverflowError for a moment that the database stores and nobody can read again: of the year 0."""
        for moment in filter(None, (self.expires_at, self.created_at, self.updated_at)):
            moment.astimezone(UTC)


class RelatedForm(Struct, kw_only=True, frozen=True):
    """A node that another one refers to."""

    id: str
    type: Annotated[str, Meta(max_length=10)] | None = None  # of LlamaIndex's `ObjectType`
    hash: str | None = None
    metadata: dict[str, Any] = {}


class NodeForm(Struct, kw_only=True, frozen=True):
    """What LlamaIndex keeps of a node, besides its text and vector."""

    id: _Name
    metadata: dict[str, Any]
    hidden_from_embedding: tuple[str, ...]  # keys of the metadata
    hidden_from_llm: tuple[str, ...]
    text_template: str
    metadata_template: str
    metadata_separator: Annotated[str, Meta(max_length=10)]
    related: dict[str, Annotated[tuple[RelatedForm, ...], Meta(min_length=1)]]  # by the name of the relationship
    start: int | None = None  # where the parser says that it stands
    end: int | None = None


class ChunkForm(Struct, kw_only=True, frozen=True):
    """A chunk of a document."""

    index: _Count
    start: _Count  # characters of the document's text
    end: _Count
    text: str | None  # None: those characters
    spans: Annotated[tuple[Span, ...], Meta(max_length=_MAX_SPANS)]
    embedding: bytes  # numbers of 16 bits, little-endian (Base64); empty: the model could not embed the text
    node: NodeForm

    @property
    def length(self) -> int:
        """Characters of its text."""
        return self.end - self.start if self.text is None else len(self.text)


# [number, is_data, is_heading, section, page, cells]; a cell is [text, key, number, start], or null.
Row = tuple[int, bool, bool, str, int | None, list[tuple[str, str, str | None, int | None] | None]]


def decode(data: bytes, kind: type[_Kind], name: str) -> _Kind:
    """A member of JSON. Raises ArchiveError."""
    try:
        found = msgspec.json.decode(data, type=kind)
        msgspec.json.encode(found)  # numbers that nobody else reads
    except (msgspec.MsgspecError, ValueError, OverflowError, RecursionError) as error:
        raise ArchiveError(f"{name} of the file is not as an export writes it{_reason(error)}.") from error
    return found


def _reason(error: Exception) -> str:
    """Return what is wrong where, as msgspec tells it: "Expected `int`, got `bool` - at `$.spans[0][0]`"."""
    return f": {str(error)[:300]}" if isinstance(error, msgspec.MsgspecError) else ""


def read_manifest(data: bytes) -> Manifest:
    """The manifest. Raises ArchiveVersionError if it is of another version."""

    class Head(Struct):
        format: str
        version: int

    head = decode(data, Head, MANIFEST)
    if head.format != FORMAT:
        raise ArchiveError("The file is not an export of a corpus.")
    if head.version != VERSION:
        raise ArchiveVersionError(f"The file has version {head.version} of the format; this service reads {VERSION}.")
    return decode(data, Manifest, MANIFEST)


def decode_chunks(data: bytes, text: str, name: str) -> list[ChunkForm]:
    """The chunks of a member, a line each. Raises ArchiveError."""
    chunks = [decode(line, ChunkForm, name) for line in data.splitlines()]
    for number, chunk in enumerate(chunks):
        wrong = [
            path
            for path, is_right in (
                ("end", chunk.start <= chunk.end <= len(text)),
                ("spans", all(map(_is_span, chunk.spans))),
                ("node", _is_node(chunk.node)),
                ("node.metadata", is_bounded(chunk.node.metadata)),
                ("node.related", all(is_bounded(one.metadata) for some in chunk.node.related.values() for one in some)),
            )
            if not is_right
        ]
        if wrong:
            raise ArchiveError(f"{name} of the file has a chunk that no export has - at `$[{number}].{wrong[0]}`.")
    return chunks


def divide_long(chunks: Sequence[ChunkForm], text: str, *, more: int) -> list[ChunkForm]:
    """Chunks of which none is longer than a question can bear: the parts of one that is have its vector and metadata.

    Node parsers, and texts without words, make chunks of any length, and whatever was exported can be imported.

    Args:
        more: parts that were added before to chunks of the same document.
    """
    divided: list[ChunkForm] = []
    for chunk in chunks:
        whole = text[chunk.start : chunk.end] if chunk.text is None else chunk.text
        cuts = [0]
        while len(whole) - cuts[-1] > _MAX_CHUNK:
            most = cuts[-1] + _MAX_CHUNK
            cuts.append(1 + max(whole.rfind(sign, cuts[-1] + _MAX_CHUNK // 2, most) for sign in "\n ") or most)
        for number, (start, end) in enumerate(pairwise([*cuts, len(whole)])):
            part = chunk if len(cuts) == 1 else _part(chunk, whole, start, end, number)
            divided.append(msgspec.structs.replace(part, index=chunk.index + more + number))
        more += len(cuts) - 1
    return divided


def _part(chunk: ChunkForm, whole: str, start: int, end: int, number: int) -> ChunkForm:
    node = msgspec.structs.replace(chunk.node, id=f"{chunk.node.id}/{number}" if number else chunk.node.id)
    if chunk.text is not None:  # another text than the document's, which stands where the whole stands
        return msgspec.structs.replace(chunk, text=whole[start:end], node=node)
    first, last = chunk.start + start, chunk.start + end
    spans = tuple(span for span in chunk.spans if span.start < last and span.end > first)
    return msgspec.structs.replace(chunk, start=first, end=last, spans=spans, node=node)


def check_document(form: DocumentForm, name: str) -> None:
    """Raise ArchiveError if the metadata of a document is not what is read of it later."""
    try:
        msgspec.convert(form.metadata.get(READER_WARNINGS, []), _Warnings)
    except msgspec.ValidationError as error:
        raise ArchiveError(f"{name} of the file is wrong at `$.metadata.{READER_WARNINGS}`: {error}.") from error
    if not is_bounded(form.metadata):
        raise ArchiveError(f"{name} of the file has too much, or too deeply nested, at `$.metadata`.")


def is_bounded(value: Any, depth: int = _MAX_DEPTH) -> bool:
    """Return whether a value of JSON is nested no deeper, and no list or object of it longer, than documents have."""
    if isinstance(value, dict | list):
        inner = value.values() if isinstance(value, dict) else value
        return depth > 0 and len(value) <= _MAX_ENTRIES and all(is_bounded(one, depth - 1) for one in inner)
    return not isinstance(value, int) or abs(value) < 2**63


def decode_table(data: bytes, name: str) -> TableDescription:
    table = decode(data, TableDescription, name)
    if not 0 < len(table.columns) == len(table.texts):
        raise ArchiveError(f"{name} of the file is not as an export writes it.")
    return table


def check_rows(data: bytes, table: TableDescription, text: str, name: str) -> int:
    """The number of rows of a member. Raises ArchiveError."""
    try:
        rows = msgspec.json.decode(data, type=list[Row])
        fine = bool(rows) and all(len(row[5]) == len(table.columns) for row in rows)
        fine &= all(0 <= row[0] < 2**31 and 0 <= (row[4] or 0) < 2**31 for row in rows)
        for cell in (cell for row in rows for cell in row[5] if cell is not None):
            fine &= (cell[2] is None or _is_number(cell[2])) and 0 <= (cell[3] or 0) <= len(text)
    except (msgspec.MsgspecError, ValueError, RecursionError, InvalidOperation) as error:
        raise ArchiveError(f"{name} of the file is not as an export writes it{_reason(error)}.") from error
    if not fine:
        raise ArchiveError(f"{name} of the file has a row that no export has.")
    return len(rows)


def _is_number(written: str) -> bool:
    if not _NUMBER.fullmatch(written):  # Decimal reads more than the database does
        return False
    number = Decimal(written)
    return len(written) <= _MAX_DIGITS and number.is_finite() and abs(number.adjusted()) <= _MAX_DIGITS


def _is_span(span: Span) -> bool:
    location = span.location
    numbers = (location.page, location.last_page, location.row, location.paragraph, location.slide)
    try:
        words = base64.b64decode(span.words, validate=True)
    except ValueError:
        return False
    return (
        0 <= span.start <= span.end < 2**31
        and len(words) % _WORD_BYTES == 0
        and all(number is None or 0 <= number < 2**31 for number in numbers)
        and max(len(location.headings), len(location.boxes)) <= _MAX_ENTRIES
        and all(abs(side) < 2**31 for box in location.boxes for side in box)
    )


def _is_node(node: NodeForm) -> bool:
    return (
        _is_template(node.text_template, {"content", "metadata_str"})
        and _is_template(node.metadata_template, {"key", "value"})
        and (len(node.metadata_template) + len(node.metadata_separator)) * len(node.metadata) <= _MAX_WRITTEN
        and node.related.keys() <= NodeRelationship.__members__.keys()
        and all(isinstance(node.metadata.get(key), str | None) for key in (LANGUAGE, CHUNK_TYPE))
    )


def _is_template(template: str, names: set[str]) -> bool:
    """Whether a template holds each name at most once, and as it is: a width could ask for gigabytes of spaces."""
    if len(template) > _MAX_TEMPLATE:
        return False
    try:
        parts = [part[1:] for part in string.Formatter().parse(template) if part[1] is not None]
    except ValueError:
        return False
    held = [name for name, spec, conversion in parts if not spec and conversion is None]
    return len(held) == len(parts) == len(set(held)) and set(held) <= names


def read_vector(packed: bytes, dimension: int) -> list[float]:
    """The numbers of a vector, or [] for none. Raises ArchiveError unless there are `dimension` finite ones."""
    if not packed:
        return []
    vector = np.frombuffer(packed, "<f2") if len(packed) == 2 * dimension else np.array([np.nan])
    if not np.isfinite(vector).all():
        raise ArchiveError(f"The file has a vector that is not {dimension} numbers.")
    numbers: list[float] = vector.astype(np.float32).tolist()
    return numbers


def write_chunk(node: BaseNode, text: str) -> ChunkForm:
    """A stored node with its vector and spans; `text` is that of its document."""
    metadata, content = node.metadata, node.get_content(MetadataMode.NONE)
    start, end = metadata[CHAR_START], metadata[CHAR_END]
    plain = node if isinstance(node, TextNode) else TextNode()  # the templates of a node of another kind
    return ChunkForm(
        index=metadata[CHUNK_INDEX],
        start=start,
        end=end,
        text=None if text[start:end] == content else content,
        spans=read_spans(metadata[SPANS]),
        embedding=np.asarray(node.get_embedding(), "<f2").tobytes(),
        node=NodeForm(
            id=node.node_id,
            metadata={key: value for key, value in metadata.items() if key not in (SPANS, *REQUIRED_KEYS)},
            hidden_from_embedding=tuple(node.excluded_embed_metadata_keys),
            hidden_from_llm=tuple(node.excluded_llm_metadata_keys),
            text_template=plain.text_template,
            metadata_template=node.metadata_template,
            metadata_separator=node.metadata_separator,
            related={
                NodeRelationship(kind).name: tuple(map(_write_related, one))
                if isinstance(one, list)
                else (_write_related(one),)
                for kind, one in node.relationships.items()
            },
            start=plain.start_char_idx,
            end=plain.end_char_idx,
        ),
    )


def _write_related(related: RelatedNodeInfo) -> RelatedForm:
    kind = getattr(related.node_type, "value", related.node_type)
    return RelatedForm(id=related.node_id, type=kind, hash=related.hash, metadata=related.metadata)


@dataclass(frozen=True, kw_only=True)
class Renamed:
    """A document that gets another id, and its nodes with it."""

    before: str
    document_id: UUID
    corpus_id: UUID

    def node_id(self, before: str) -> str:
        """The same one for the same node; no other document has it."""
        if before.startswith(f"{self.before}:"):  # as our chunker makes them
            return f"{self.document_id}:{before.removeprefix(f'{self.before}:')}"
        return str(uuid5(self.document_id, before))

    def make_node(self, chunk: ChunkForm, text: str, vector: list[float] | None) -> BaseNode:
        """A chunk as a node of the document."""
        form = chunk.node
        return TextNode(
            id_=self.node_id(form.id),
            text=text[chunk.start : chunk.end] if chunk.text is None else chunk.text,
            embedding=vector,
            metadata={
                **form.metadata,
                CORPUS_ID: str(self.corpus_id),
                DOCUMENT_ID: str(self.document_id),
                CHUNK_INDEX: chunk.index,
                CHAR_START: chunk.start,
                CHAR_END: chunk.end,
                SPANS: list(map(write_span, chunk.spans)),
            },
            excluded_embed_metadata_keys=list(form.hidden_from_embedding),
            excluded_llm_metadata_keys=list(form.hidden_from_llm),
            text_template=form.text_template,
            metadata_template=form.metadata_template,
            metadata_separator=form.metadata_separator,
            start_char_idx=form.start,
            end_char_idx=form.end,
            relationships=dict(map(self._related, form.related.items())),
        )

    def _related(self, item: tuple[str, tuple[RelatedForm, ...]]) -> tuple[NodeRelationship, Any]:
        relationship, nodes = NodeRelationship[item[0]], item[1]
        found = []
        for node in nodes:
            node_id = str(self.document_id) if node.id == self.before else self.node_id(node.id)
            if relationship is NodeRelationship.SOURCE and node.id != self.before:
                node_id = node.id  # of a document of LlamaIndex's, whose name it is
            found.append(RelatedNodeInfo(node_id=node_id, node_type=node.type, hash=node.hash, metadata=node.metadata))
        return relationship, found if relationship is NodeRelationship.CHILD else found[0]
