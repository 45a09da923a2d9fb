"""Hits as LlamaIndex nodes and back, so that its postprocessors and response objects work on them."""

from __future__ import annotations

from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.schema import NodeWithScore, TextNode

from rag_service.domain import Hit


class PassageNode(TextNode):
    """A text node that remembers the hit it was made from."""

    _hit: Hit = PrivateAttr()

    @property
    def hit(self) -> Hit:
        return self._hit


def to_node(hit: Hit) -> NodeWithScore:
    """A hit as LlamaIndex sees it; the node's score is the calibrated relevance."""
    document = hit.chunk.document
    node = PassageNode(
        id_=hit.chunk.id,
        text=hit.chunk.text,
        metadata={
            "document_id": str(document.id),
            "title": document.title,
            "file_name": document.file_name,
            "source": document.source,
            "chunk_index": hit.chunk.index,
        },
    )
    node._hit = hit
    return NodeWithScore(node=node, score=hit.scores.relevance)


def to_hit(scored: NodeWithScore) -> Hit:
    """The hit behind a node of ours.

    Raises:
        TypeError: the node came from elsewhere.
    """
    if not isinstance(scored.node, PassageNode):
        raise TypeError(f"{type(scored.node).__name__} is no passage of this service")
    return scored.node.hit
