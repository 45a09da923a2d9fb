"""Passages as LlamaIndex nodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llama_index.core.schema import NodeRelationship, NodeWithScore, RelatedNodeInfo, TextNode

from rag_service.domain import Hit, describe_place

_EMBEDDED = {"title", "file_name", "source"}  # what embedding models and cross-encoders see of a node's metadata


def to_node(hit: Hit) -> NodeWithScore:
    """A passage as LlamaIndex sees it; the score is the calibrated relevance, 0..1."""
    chunk, document = hit.chunk, hit.chunk.document
    location = chunk.location
    return make_node(
        chunk.id,
        chunk.text,
        (chunk.start, chunk.end),
        score=hit.scores.relevance,
        ids={"document_id": str(document.id), "corpus_id": str(document.corpus_id), "chunk_index": chunk.index},
        extra=chunk.extra,
        metadata={
            **chunk.metadata,
            "title": document.title,
            "file_name": document.file_name,
            "source": document.source,
            "tags": list(document.tags),
            "language": document.language,
            "dated": None if document.dated is None else document.dated.isoformat(),
            "updated_at": document.updated_at.isoformat(),
            "place": describe_place(document, location),
            "page_label": None if location is None or location.page is None else str(location.page),
        },
    )


def make_node(
    chunk_id: str,
    text: str,
    offsets: tuple[int, int],
    *,
    score: float,
    ids: Mapping[str, Any],
    extra: Mapping[str, Any],
    metadata: Mapping[str, Any],
) -> NodeWithScore:
    """A passage as a node, of which postprocessors see all metadata.

    Args:
        ids: of its document and corpus, and its number: language models do not see them.
        extra: whatever documents and transformations bring, such as the `window` of a `SentenceWindowNodeParser`:
            language models do not see it either.
        metadata: what is known of every document; embedding models and cross-encoders see title, file and source of it.
    """
    empty = (key for key, value in metadata.items() if value in (None, "", []))  # a line of a prompt that says nothing
    hidden = [*ids, *(key for key in extra if key not in metadata), *empty]
    node = TextNode(
        id_=chunk_id,
        text=text,
        start_char_idx=offsets[0],
        end_char_idx=offsets[1],
        metadata={**extra, **metadata, **ids},
        excluded_llm_metadata_keys=hidden,
        excluded_embed_metadata_keys=[*hidden, *(key for key in metadata if key not in {*_EMBEDDED, *hidden})],
        relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=str(ids["document_id"]))},
    )
    return NodeWithScore(node=node, score=score)
