"""Nodes of pipelines that are not ours: they get a document, an order and offsets, and are stored like all others."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

from llama_index.core.schema import BaseNode, MetadataMode, TextNode

from rag_service.domain import Identity
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
)
from rag_service.store.documents.documents import NewDocument, find_document, store_document
from rag_service.store.rows import database_now

_OWN_KEYS = (CORPUS_ID, DOCUMENT_ID, LANGUAGE, CHUNK_INDEX, CHUNK_TYPE, CHAR_START, CHAR_END, SPANS)
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")
_JOINT = "\n\n"  # between nodes whose place in their document is not known


async def store_nodes(
    connection: Connection,
    identity: Identity,
    nodes: Sequence[BaseNode],
    index: IndexDefinition,
    fingerprint: str,
) -> None:
    """Store embedded nodes in the caller's transaction, those of one `ref_doc_id` as one document.

    A document of this name is replaced, unless the first node names a stored one as its predecessor. Nodes without a
    `ref_doc_id` are documents of their own. They go to the corpus in their metadata, else to the default one, created
    with `index`. Raises like `require_writable`.
    """
    documents: dict[tuple[UUID, str], list[BaseNode]] = {}
    fallback: UUID | None = None
    for node in nodes:
        target = _read_uuid(node.metadata.get(CORPUS_ID))
        if target is None:
            fallback = target = fallback or (await default_corpus(connection, identity, index_name=index.name)).id
        documents.setdefault((target, _storable(node.ref_doc_id or node.node_id)), []).append(node)
    await lock_corpora(connection, {str(target) for target, _ in documents})
    for (target, name), of_document in documents.items():
        corpus = await require_writable(connection, target)
        now = await database_now(connection)
        stored = await find_document(connection, target, name=name)
        if stored is not None:
            of_document = [*await _read_earlier_batches(connection, stored.id, of_document[0]), *of_document]
        metadata = _common_metadata(of_document)
        text, placed = place_nodes(of_document, None)
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
        await store_document(connection, document, [mark_node(node, document) for node in placed])


async def _read_earlier_batches(connection: Connection, document_id: UUID, first: BaseNode) -> list[BaseNode]:
    """All nodes of a stored document, with vectors, if `first` continues it; none if it begins a new version."""
    before = first.prev_node
    parameters = {"document": document_id, "before": "" if before is None else before.node_id}
    where = "document_id = %(document)s AND EXISTS (SELECT FROM data_chunks WHERE node_id = %(before)s"
    where += " AND document_id = %(document)s)"
    return list((await read_nodes(connection, where, parameters, with_vectors=True)).values())


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
    """(text of the document, copies of its nodes with their order, offsets and spans).

    Where a node does not stand in the text, or there is none, the text is made of the nodes: at the offsets that
    they name where these fit together, else one after the other.
    """
    contents = [_storable(node.get_content(MetadataMode.NONE)) for node in nodes]
    starts = [node.start_char_idx if isinstance(node, TextNode) else None for node in nodes]
    offsets = None if text is None else _find(contents, starts, text)
    if text is None or offsets is None:
        text, offsets, spans = *_compose(contents, starts), ()
    placed = []
    for number, (node, content, start) in enumerate(zip(nodes, contents, offsets, strict=True)):
        end = start + len(content)
        copy = node.model_copy()
        copy.set_content(content)
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


def _compose(contents: Sequence[str], starts: Sequence[int | None]) -> tuple[str, list[int]]:
    """(a text made of the contents, where each stands in it)."""
    if all(start is not None for start in starts):
        text, fits = "", True
        offsets = [start or 0 for start in starts]
        for start, content in sorted(zip(offsets, contents, strict=True)):
            overlap = text[start : start + len(content)]
            fits = fits and start <= len(text) + 1_000 and content.startswith(overlap)
            text = text.ljust(start, "\n") + content[len(overlap) :] if fits else text
        if fits:
            return text, offsets
    offsets, length = [], 0
    for content in contents:
        offsets.append(length)
        length += len(content) + len(_JOINT)
    return _JOINT.join(contents), offsets


def _common_metadata(nodes: Sequence[BaseNode]) -> dict[str, Any]:
    """What all nodes say alike of their document."""
    common: dict[str, Any] = _storable_value(
        {
            key: value
            for key, value in nodes[0].metadata.items()
            if (key not in _OWN_KEYS or key == LANGUAGE) and all(node.metadata.get(key) == value for node in nodes)
        }
    )
    return common


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
