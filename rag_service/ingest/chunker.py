"""Splits documents into chunks: by sections (or sheets) first, then paragraphs, lines, sentences.

A chunk is an unmodified slice of the stored text, so citation offsets are found by addition. A sentence is split only
if it is longer than a chunk.
"""

from __future__ import annotations

import asyncio
import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.node_parser import NodeParser
from llama_index.core.schema import BaseNode, MetadataMode, NodeRelationship, RelatedNodeInfo, TextNode

from rag_service.domain import MAIL_HEADER, Span, read_spans, write_span
from rag_service.indices import IngestDefinition
from rag_service.language.languages import load_language
from rag_service.language.sentences import split_sentences
from rag_service.language.words import count_tokens, fold
from rag_service.readers.file_reader import TITLE
from rag_service.store.documents.chunks import CHAR_END, CHAR_START, CHUNK_INDEX, CHUNK_TYPE, LANGUAGE, SPANS
from rag_service.word_boxes import cut

SECTION = "section"
_HEADER = "header"  # of a mail: what its lines tell
SMALL_SECTION = 50  # tokens; a smaller one is merged with the next, unless it has its own chunk type

_NUMBER = re.compile(r"\A\S*\d\S*\s+")  # of a heading: "2.1 Fees"
_PARAGRAPH = re.compile(r"(?:.+\n?)+")
_LINE = re.compile(r".+\n?")
_WORD_RUN = re.compile(r"(?:\S{1,200}\s*){1,60}")  # used for sentences longer than a chunk: lists or garbage


@dataclass(frozen=True, kw_only=True)
class _Piece:
    """A part that is not split further: [start, end) and its size."""

    start: int
    end: int
    tokens: int
    headings: tuple[str, ...]


class Chunker(NodeParser):
    """A LlamaIndex node parser for documents of `FileReader`; their `spans` locate the chunks.

    Title and section precede the text for embedding and keyword search: a passage under "Requirements" seldom says what
    the requirements are for, and the header of a mail not that it is one, and was sent.
    """

    _definition: IngestDefinition = PrivateAttr()
    _types: dict[str, str] = PrivateAttr()

    def __init__(self, definition: IngestDefinition):
        super().__init__()
        self._definition = definition
        self._types = {fold(heading): kind for heading, kind in definition.chunk_types.items()}

    @classmethod
    def class_name(cls) -> str:
        return "Chunker"

    def __call__(self, nodes: Sequence[BaseNode], **_: Any) -> list[BaseNode]:
        return self._parse_nodes(nodes)

    async def acall(self, nodes: Sequence[BaseNode], **_: Any) -> list[BaseNode]:
        """In a thread, since a long document takes seconds."""
        return await asyncio.to_thread(self._parse_nodes, nodes)

    def _parse_nodes(self, nodes: Sequence[BaseNode], show_progress: bool = False, **_: Any) -> list[BaseNode]:
        return [chunk for document in nodes for chunk in self._chunk(document)]

    def _chunk(self, document: BaseNode) -> list[BaseNode]:
        text = document.get_content(metadata_mode=MetadataMode.NONE)
        spans = read_spans(document.metadata.get(SPANS))
        title = document.metadata.get(TITLE)
        inherited = {key: value for key, value in document.metadata.items() if key != SPANS}
        span_starts, span_ends = [span.start for span in spans], [span.end for span in spans]  # both sorted
        chunks: list[BaseNode] = []
        for group in self._pack(_pieces(text, spans, self._definition.chunk_tokens)):
            start, end = _trim(text, group[0].start, group[-1].end)
            if start >= end:
                continue
            within = spans[bisect_right(span_ends, start) : bisect_left(span_starts, end)]
            headings = max((piece.headings for piece in group), key=len)
            metadata: dict[str, Any] = inherited | {
                SECTION: " > ".join(heading for heading in headings if heading != title),
                CHUNK_INDEX: len(chunks),
                CHUNK_TYPE: self._type_of(headings),
                CHAR_START: start,
                CHAR_END: end,
                SPANS: [write_span(cut(span, start, end)) for span in within],
            }
            if any(_is_header(span) for span in spans if span.start < end and span.end > start):
                metadata[_HEADER] = load_language(metadata.get(LANGUAGE)).mail.header
            shown = [key for key in (TITLE, SECTION, _HEADER) if metadata.get(key)]
            chunk = TextNode(
                id_=f"{document.node_id}:{len(chunks)}",
                text=text[start:end],
                relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=document.node_id)},
                metadata=metadata,
                excluded_embed_metadata_keys=[key for key in metadata if key not in shown],
                excluded_llm_metadata_keys=list(metadata),
                metadata_template="{value}",
                text_template="{metadata_str}\n\n{content}",
            )
            chunks.append(chunk)
        return chunks

    def _pack(self, pieces: Sequence[_Piece]) -> list[list[_Piece]]:
        """Group pieces greedily up to the chunk size; each group starts with the overlap of the previous one."""
        limit, overlap = self._definition.chunk_tokens, self._definition.chunk_overlap
        groups: list[list[_Piece]] = []
        current: list[_Piece] = []
        size = fresh = 0  # tokens of the group; those not in an earlier group
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

    def _type_of(self, headings: tuple[str, ...]) -> str | None:
        for heading in reversed(headings):
            if kind := self._types.get(fold(heading)) or self._types.get(fold(_NUMBER.sub("", heading))):
                return kind
        return None


def _pieces(text: str, spans: Sequence[Span], limit: int) -> list[_Piece]:
    """Split a text; a piece has the heading path, or sheet, of the span that it starts in."""
    pieces = []
    place = 0
    for start, end, tokens in _split(text, 0, len(text), limit, level=0):
        while place < len(spans) and spans[place].end <= start:
            place += 1
        headings: tuple[str, ...] = ()
        if place < len(spans) and spans[place].start <= start:
            location = spans[place].location
            outer, _, part = (location.part or "").rpartition(" > ")
            is_forwarded = part == MAIL_HEADER and location.headings  # the header is in the section of its message
            headings = (*filter(None, (outer if is_forwarded else location.part, location.sheet)), *location.headings)
        pieces.append(_Piece(start=start, end=end, tokens=tokens, headings=headings))
    return pieces


def _is_header(span: Span) -> bool:
    return (span.location.part or "").rpartition(" > ")[2] == MAIL_HEADER


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
    """Last pieces of a group that fit into the overlap and the room left by the next piece."""
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
