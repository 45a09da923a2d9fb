"""Nodes of pipelines that are not ours: they get a document, an order and offsets, and are stored like all others."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

from llama_index.core.schema import BaseNode, MetadataMode, NodeRelationship, TextNode

from rag_service.domain import Identity
from rag_service.errors import InputError
from rag_service.indices import IndexDefinition
from rag_service.language.detection import detect_language
from rag_service.store.corpora import default_corpus, lock_corpora, require_writable
from rag_service.store.database import Connection
from rag_service.store.documents.chunks import (
    CHAR_END,
    CHAR_START,
    CHUNK_INDEX,
    CHUNK_TYPE,
    CORPUS_ID,
    DOCUMENT_ID,
    LANGUAGE,
    SPANS,
    read_nodes,
    read_vectors,
)
from rag_service.store.documents.documents import NewDocument, find_document, store_document
from rag_service.store.rows import database_now

_OWN_KEYS = (CORPUS_ID, DOCUMENT_ID, LANGUAGE, CHUNK_INDEX, CHUNK_TYPE, CHAR_START, CHAR_END, SPANS)
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")
_JOINT = "\n\n"  # between nodes that do not adjoin, or of which that is not known


async def store_nodes(
    connection: Connection,
    identity: Identity,
    nodes: Sequence[BaseNode],
    index: IndexDefinition,
    fingerprint: str,
) -> None:
    """Store embedded nodes in the caller's transaction, those of one `ref_doc_id` as one document.

    They join the stored nodes of the same version of it (`_join`). Nodes without a `ref_doc_id` are documents of their
    own. They go to the corpus in their metadata, else to the default one, created with `index`. Raises InputError if
    the nodes of one document come from two versions of it, and like `require_writable`.
    """
    documents: dict[tuple[UUID, str], list[BaseNode]] = {}
    fallback: UUID | None = None
    for node in nodes:
        target = _read_uuid(node.metadata.get(CORPUS_ID))
        if target is None:
            fallback = target = fallback or (await default_corpus(connection, identity, index_name=index.name)).id
        documents.setdefault((target, _source_name(node)), []).append(node)
    await lock_corpora(connection, {str(target) for target, _ in documents})  # before what is stored is read
    for (target, name), given in documents.items():
        corpus = await require_writable(connection, target)
        now = await database_now(connection)
        stored = await find_document(connection, target, name=name)
        earlier: list[BaseNode] = []
        if stored is not None:
            read = await read_nodes(connection, "document_id = %(document)s", {"document": stored.id})
            earlier = list(read.values())
        text, placed = place_nodes(_join(name, earlier, given), None)
        metadata = _common_metadata(placed)
        title = metadata.get("title") or metadata.get("file_name") or name
        language = str(metadata.get(LANGUAGE) or detect_language(text) or "") or None
        document = NewDocument(
            id=uuid4() if stored is None else stored.id,
            corpus_id=target,
            name=name,
            title=str(title),
            file_name=_text_or_none(metadata.get("file_name")),
            source=_text_or_none(metadata.get("source")),
            tags=tuple(map(str, tags)) if isinstance(tags := metadata.get("tags"), list) else (),
            language=language,
            media_type=_text_or_none(metadata.get("file_type")),
            content_hash=hashlib.sha256(text.encode()).hexdigest(),
            fingerprint=fingerprint,
            text=text,
            fields={key: str(value) for key, value in metadata.items() if key in index.ingest.filter_fields},
            metadata=metadata,
            size_bytes=len(text.encode()),
            expires_at=None if corpus.ttl_seconds is None else now + timedelta(seconds=corpus.ttl_seconds),
        )
        await _store(connection, document, earlier, [mark_node(node, document) for node in placed])


async def describe_conflict(connection: Connection, nodes: Sequence[BaseNode]) -> str:
    """Which of these nodes has an id that is taken, and by what, as far as the identity may know."""
    documents = {node.node_id: _source_name(node) for node in nodes}
    if twice := [node_id for node_id, count in Counter(node.node_id for node in nodes).items() if count > 1]:
        return f"The id {twice[0]!r} is given to several nodes: give each its own."
    cursor = await connection.execute(
        "SELECT c.node_id, d.name FROM data_chunks c JOIN documents d ON d.id = c.document_id"
        " WHERE c.node_id = ANY(%s)",
        [list(documents)],
    )
    for node_id, name in await cursor.fetchall():
        if documents[node_id] != name:
            return (
                f"Node {node_id!r} is already stored, in the document {name!r}: give it another id, or delete that"
                " document first."
            )
    return "A node with this id is already stored, in a corpus that you cannot read: give it another id."


async def _store(
    connection: Connection, document: NewDocument, earlier: Sequence[BaseNode], nodes: Sequence[BaseNode]
) -> None:
    """Store a document; where its `earlier` nodes, which came without vectors, stay as they are, only the new ones."""
    if earlier and all(map(_is_in_place, earlier, nodes)):
        await store_document(connection, document, nodes, kept=len(earlier))
        return
    vectors = await read_vectors(connection, document.id)
    for node in nodes:
        node.embedding = node.embedding or vectors[node.node_id]
    await store_document(connection, document, nodes)


def _is_in_place(stored: BaseNode, node: BaseNode) -> bool:
    """Whether a node is the stored one, and stands where it stood."""
    metadata = {key: value for key, value in node.metadata.items() if key != SPANS}
    return node.embedding is None and node.node_id == stored.node_id and metadata == stored.metadata


def _join(name: str, stored: Sequence[BaseNode], new: Sequence[BaseNode]) -> list[BaseNode]:
    """The nodes of a document after `new` ones came; those with the id of a stored one take its place.

    LlamaIndex writes the hash of a document into the source of its nodes. Nodes of another hash are another version,
    which replaces the document; so is a document of this name that no such nodes made. Nodes without a hash belong to
    every version.

    Raises InputError if the new nodes come from two versions.
    """
    versions = {_version(node) for node in new} - {None}
    if len(versions) > 1:
        raise InputError(f"Two different documents are the source of nodes named {name!r}; give each its own id.")
    kept = [node for node in stored if _source_name(node) == name]
    if versions:
        kept = [node for node in kept if _version(node) in {None, *versions}]
        if _same_again(kept, new):
            return list(new)
    return list({node.node_id: node for node in (*kept, *new)}.values())


def _same_again(stored: Sequence[BaseNode], new: Sequence[BaseNode]) -> bool:
    """Whether a whole document was parsed once more: only its node ids, which LlamaIndex draws at random, differ.

    The new nodes are whole if they name no neighbour but each other: a batch of equal pages is not.
    """
    ids = {node.node_id for node in new}
    linked = {
        info.node_id
        for node in new
        for relationship, related in node.relationships.items()
        if relationship != NodeRelationship.SOURCE
        for info in (related if isinstance(related, list) else [related])
    }
    return linked <= ids and _contents(stored) == _contents(new) and all(_start(node) is not None for node in new)


def _contents(nodes: Sequence[BaseNode]) -> list[str]:
    """What the nodes say and where, but for their ids and what was added here."""
    contents = []
    for node in nodes:
        metadata = {key: value for key, value in _storable_value(node.metadata).items() if key not in _OWN_KEYS}
        content = [_start(node), _storable(node.get_content(MetadataMode.NONE)), metadata]
        contents.append(json.dumps(content, sort_keys=True, default=str))
    return sorted(contents)


def mark_node(node: BaseNode, document: NewDocument) -> BaseNode:
    """The node with the ids and the language of its document, which models do not see."""
    node.metadata |= {
        CORPUS_ID: str(document.corpus_id),
        DOCUMENT_ID: str(document.id),
        LANGUAGE: document.language,
    }
    for excluded in (node.excluded_embed_metadata_keys, node.excluded_llm_metadata_keys):
        excluded.extend(key for key in _OWN_KEYS if key not in excluded)
    return node


def place_nodes(
    nodes: Sequence[BaseNode], text: str | None, spans: Sequence[Sequence[Any]] = ()
) -> tuple[str, list[BaseNode]]:
    """(text of the document, copies of its nodes in the order of the text, with their offsets and spans).

    Where a node does not stand in the text, or there is none, the text is made of the nodes: at the offsets that
    they name where these fit together, else one after the other.
    """
    contents = [_storable(node.get_content(MetadataMode.NONE)) for node in nodes]
    starts = [_start(node) for node in nodes]
    offsets = None if text is None else _find(contents, starts, text)
    if text is None or offsets is None:
        text, offsets = _lay_out(contents, starts) or _string_together(nodes, contents)
        spans = ()
    placed = []
    for number, place in enumerate(_by_place(offsets, contents)):
        node, start, end = nodes[place], offsets[place], offsets[place] + len(contents[place])
        copy = node.model_copy()
        copy.set_content(contents[place])
        copy.metadata = _storable_value(node.metadata) | {
            CHUNK_INDEX: number,
            CHAR_START: start,
            CHAR_END: end,
            SPANS: [span for span in spans if span[0] < end and span[1] > start],
        }
        copy.excluded_embed_metadata_keys = list(node.excluded_embed_metadata_keys)
        copy.excluded_llm_metadata_keys = list(node.excluded_llm_metadata_keys)
        placed.append(copy)
    return text, placed


def _find(contents: Sequence[str], starts: Sequence[int | None], text: str) -> list[int] | None:
    """Where the contents stand in a text; None if one does not."""
    found, at = [], 0
    for content, start in zip(contents, starts, strict=True):
        if start is None or not text.startswith(content, start):
            start = text.find(content, at)
            start = text.find(content) if start < 0 else start
        if start < 0:
            return None
        found.append(start)
        at = start + 1
    return found


def _by_place(starts: Sequence[int], contents: Sequence[str]) -> list[int]:
    """Numbers of contents by their place in a text; of two that start together the longer one, its parent, is first."""
    return sorted(range(len(starts)), key=lambda number: (starts[number], -len(contents[number])))


def _lay_out(contents: Sequence[str], starts: Sequence[int | None]) -> tuple[str, list[int]] | None:
    """(text, where each content stands in it): as their offsets say; None if they contradict each other.

    Some parsers count within a section or a parent. What is missing between two contents is a paragraph's end.
    """
    known = [start for start in starts if start is not None]
    if len(known) < len(starts):
        return None
    text, offsets = "", [0] * len(contents)
    missing = 0  # how many characters of the source before this place are not in the text
    for number in _by_place(known, contents):
        content, gap = contents[number], known[number] - missing - len(text)
        if gap > 0 or not text:
            filled = min(gap, len(_JOINT)) if text else 0
            text += "\n" * filled
            missing += gap - filled
        offsets[number] = known[number] - missing
        overlap = text[offsets[number] : offsets[number] + len(content)]
        if not content.startswith(overlap):
            return None
        text += content[len(overlap) :]
    return text, offsets


def _string_together(nodes: Sequence[BaseNode], contents: Sequence[str]) -> tuple[str, list[int]]:
    """(text, where each content stands in it): one after the other."""
    offsets, length = [0] * len(contents), 0
    ordered = _follow(nodes)
    for number in ordered:
        offsets[number] = length
        length += len(contents[number]) + len(_JOINT)
    return _JOINT.join(contents[number] for number in ordered), offsets


def _follow(nodes: Sequence[BaseNode]) -> list[int]:
    """Numbers of nodes, each after the one that it names as its predecessor, else in their order."""
    numbers = {node.node_id: number for number, node in enumerate(nodes)}
    following: dict[str, str] = {}  # ids
    for node in nodes:
        if node.next_node is not None:
            following[node.node_id] = node.next_node.node_id
        if node.prev_node is not None:
            following.setdefault(node.prev_node.node_id, node.node_id)
    followers = {after for before, after in following.items() if before in numbers}
    firsts = [node_id for node_id in numbers if node_id not in followers]
    ordered: dict[int, None] = {}
    for first in (*firsts, *numbers):  # whatever runs in a circle has no first
        node_id: str | None = first
        while node_id in numbers and numbers[node_id] not in ordered:
            ordered[numbers[node_id]] = None
            node_id = following.get(node_id)
    return list(ordered)


def _common_metadata(nodes: Sequence[BaseNode]) -> dict[str, Any]:
    """What all nodes say alike of their document."""
    return {
        key: value
        for key, value in nodes[0].metadata.items()
        if (key not in _OWN_KEYS or key == LANGUAGE) and all(node.metadata.get(key) == value for node in nodes)
    }


def _source_name(node: BaseNode) -> str:
    """The name of the document that a node belongs to."""
    return _storable(node.ref_doc_id or node.node_id)


def _version(node: BaseNode) -> str | None:
    """The hash of the document that a node was made of, as far as it tells."""
    return None if node.source_node is None else node.source_node.hash


def _start(node: BaseNode) -> int | None:
    """Where a node says that it stands in its document."""
    return node.start_char_idx if isinstance(node, TextNode) else None


def _storable(text: str) -> str:
    """Without NUL and lone surrogates, which PostgreSQL does not hold."""
    return _UNSTORABLE.sub("", text)


def _storable_value(value: Any) -> Any:
    if isinstance(value, str):
        return _storable(value)
    if isinstance(value, Mapping):
        return {_storable(str(key)): _storable_value(item) for key, item in value.items()}
    return [_storable_value(item) for item in value] if isinstance(value, list | tuple | set) else value


def _text_or_none(value: object) -> str | None:
    return None if value is None else str(value)


def _read_uuid(value: object) -> UUID | None:
    try:
        return UUID(value) if isinstance(value, str) else None
    except ValueError:
        return None
