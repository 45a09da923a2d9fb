"""Documents into chunks of a size, cut where the text itself pauses.

A chunk is a slice of the stored text, never a rewriting of it, so that every citation offset
follows by addition. Cuts fall between sections (a sheet of a workbook is one) first, then paragraphs,
lines, sentences, and inside a sentence only when it is longer than a chunk.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.schema import BaseNode, Document, MetadataMode, TextNode, TransformComponent

from rag_service.definitions import IngestDefinition
from rag_service.domain import Location, Span
from rag_service.store.documents.chunks import CHAR_END, CHAR_START, CHUNK_INDEX, CHUNK_TYPE, SPANS
from rag_service.store.search.hits import read_span, write_span
from rag_service.text.sentences import split_sentences
from rag_service.text.tokens import count_tokens
from rag_service.text.words import fold

TITLE = "title"
SECTION = "section"
SMALL_SECTION = 50  # tokens; a smaller one is joined with what follows, unless it has a type of its own

_PARAGRAPH = re.compile(r"(?:.+\n?)+")
_LINE = re.compile(r".+\n?")
_WORD_RUN = re.compile(r"(?:\S{1,200}\s*){1,60}")  # a sentence longer than a chunk is a list or garbage


@dataclass(frozen=True, kw_only=True)
class _Piece:
    """A part that is not cut further: [start, end) and its size."""

    start: int
    end: int
    tokens: int
    headings: tuple[str, ...]


class Chunker(TransformComponent):
    """LlamaIndex transformation: documents with `spans` in their metadata become chunk nodes.

    Of the metadata, title and section stand before the text when it is embedded or indexed
    lexically: a passage under "Requirements" seldom repeats what the requirements are for.
    """

    _definition: IngestDefinition = PrivateAttr()
    _types: dict[str, str] = PrivateAttr()

    def __init__(self, definition: IngestDefinition):
        super().__init__()
        self._definition = definition
        self._types = {fold(heading): kind for heading, kind in definition.chunk_types.items()}

    def __call__(self, nodes: Sequence[BaseNode], **_: Any) -> list[BaseNode]:
        chunks: list[BaseNode] = []
        for document in nodes:
            chunks.extend(self._chunk(document))
        return chunks

    def _chunk(self, document: BaseNode) -> list[BaseNode]:
        text = document.get_content(metadata_mode=MetadataMode.NONE)
        spans = [read_span(stored) for stored in document.metadata.get(SPANS, [])]
        chunks: list[BaseNode] = []
        for group in self._pack(_pieces(text, spans, self._definition.chunk_tokens)):
            start, end = _trim(text, group[0].start, group[-1].end)
            if start < end:
                chunks.append(self._node(document, text, start, end, group, spans, index=len(chunks)))
        return chunks

    def _pack(self, pieces: Sequence[_Piece]) -> list[list[_Piece]]:
        """Greedy groups of pieces up to the chunk size; each begins with the overlap of the one before."""
        limit, overlap = self._definition.chunk_tokens, self._definition.chunk_overlap
        groups: list[list[_Piece]] = []
        current: list[_Piece] = []
        size = fresh = 0  # tokens of the group; those of them that no earlier group holds
        for piece in pieces:
            new_section = bool(current) and piece.headings != current[-1].headings
            if new_section and (size >= SMALL_SECTION or self._types):
                groups.append(current)
                current, size, fresh = [], 0, 0
            elif current and size + piece.tokens > limit:
                groups.append(current)
                current = _tail(current, overlap, room=limit - piece.tokens)
                size, fresh = sum(kept.tokens for kept in current), 0
            current.append(piece)
            size += piece.tokens
            fresh += piece.tokens
        if current and fresh:
            groups.append(current)
        return groups

    def _node(
        self,
        document: BaseNode,
        text: str,
        start: int,
        end: int,
        group: Sequence[_Piece],
        spans: Sequence[Span],
        *,
        index: int,
    ) -> TextNode:
        headings = max((piece.headings for piece in group), key=len)
        title = document.metadata.get(TITLE)
        metadata: dict[str, Any] = {key: value for key, value in document.metadata.items() if key != SPANS}
        metadata |= {
            SECTION: " > ".join(heading for heading in headings if heading != title),
            CHUNK_INDEX: index,
            CHUNK_TYPE: self._type_of(headings),
            CHAR_START: start,
            CHAR_END: end,
            SPANS: [write_span(span) for span in spans if span.start < end and span.end > start],
        }
        shown = [key for key in (TITLE, SECTION) if metadata.get(key)]
        hidden = [key for key in metadata if key not in shown]
        return TextNode(
            id_=f"{document.metadata.get('document_id', document.node_id)}:{index}",
            text=text[start:end],
            metadata=metadata,
            excluded_embed_metadata_keys=hidden,
            excluded_llm_metadata_keys=list(metadata),
            metadata_template="{value}",
            text_template="{metadata_str}\n\n{content}",
        )

    def _type_of(self, headings: tuple[str, ...]) -> str | None:
        for heading in reversed(headings):
            if kind := self._types.get(fold(heading)):
                return kind
        return None


def as_llama_document(text: str, spans: Sequence[Span], metadata: Mapping[str, Any]) -> Document:
    """A parsed document as LlamaIndex passes it through a pipeline."""
    return Document(text=text, metadata={**metadata, SPANS: [write_span(span) for span in spans]})


def _pieces(text: str, spans: Sequence[Span], limit: int) -> list[_Piece]:
    headings = _HeadingLookup(spans)
    return [
        _Piece(start=start, end=end, tokens=tokens, headings=headings.at(start))
        for start, end, tokens in _split(text, 0, len(text), limit, level=0)
    ]


def _split(text: str, start: int, end: int, limit: int, *, level: int) -> list[tuple[int, int, int]]:
    """Parts of text[start:end] of at most `limit` tokens: paragraphs, else lines, sentences, words."""
    found: list[tuple[int, int, int]] = []
    for part_start, part_end in _parts(text, start, end, level):
        tokens = count_tokens(text[part_start:part_end])
        if tokens > limit and level < 3:
            found.extend(_split(text, part_start, part_end, limit, level=level + 1))
        else:
            found.append((part_start, part_end, tokens))
    return found


def _parts(text: str, start: int, end: int, level: int) -> list[tuple[int, int]]:
    if level == 2:
        return [(start + first, start + last) for first, last in split_sentences(text[start:end])]
    pattern = {0: _PARAGRAPH, 1: _LINE, 3: _WORD_RUN}[level]
    return [match.span() for match in pattern.finditer(text, start, end)]


def _tail(group: Sequence[_Piece], overlap: int, *, room: int) -> list[_Piece]:
    """Last pieces of a group that fit the overlap and leave room for what follows."""
    kept: list[_Piece] = []
    size = 0
    for piece in reversed(group[1:]):
        size += piece.tokens
        if size > min(overlap, room):
            break
        kept.insert(0, piece)
    return kept


def _trim(text: str, start: int, end: int) -> tuple[int, int]:
    part = text[start:end]
    return start + len(part) - len(part.lstrip()), end - (len(part) - len(part.rstrip()))


class _HeadingLookup:
    """Heading path, or sheet, at a character; positions must be asked for in rising order."""

    def __init__(self, spans: Sequence[Span]):
        self._spans = spans
        self._next = 0

    def at(self, position: int) -> tuple[str, ...]:
        while self._next < len(self._spans) and self._spans[self._next].end <= position:
            self._next += 1
        if self._next < len(self._spans) and self._spans[self._next].start <= position:
            location = self._spans[self._next].location
            return (location.sheet, *location.headings) if location.sheet else location.headings
        return Location().headings
