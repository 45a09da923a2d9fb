"""Rerankers that are LlamaIndex postprocessors: a cross-encoder, or any class that sets scores.

What these classes do, and what is done about it:

- they keep two or three nodes by default: `top_n` is set to the number of passages;
- they change the nodes that they are given, and write the old score into the metadata, which the next call would
  read as text: each call gets nodes of its own that hold the passage alone;
- scores are probabilities or logits, depending on the model's configuration: those outside 0..1 go through a sigmoid;
- they block: each runs in a thread of its own.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from rag_service.domain import Hit
from rag_service.errors import RerankError
from rag_service.models.local_runtime import ModelThreads, import_torch
from rag_service.models.plugins import instantiate
from rag_service.models.reranking.reranker import by_score

SECONDS = 60.0  # time limit of one call


class PostprocessorReranker:
    """Runs a LlamaIndex postprocessor that rates nodes. It is made at the first use or `warm_up`."""

    def __init__(self, name: str, make: Callable[[], BaseNodePostprocessor]):
        self.name = name
        self._make = make  # makes the postprocessor; may import and load for seconds
        self._postprocessor: BaseNodePostprocessor | None = None
        self._threads = ModelThreads(f"rerank-{name}")

    async def warm_up(self) -> None:
        """Load the model; RerankError if that fails."""
        try:
            await self._threads.run(self._loaded)
        except Exception as error:
            raise RerankError("The reranking model cannot be loaded.") from error

    async def rerank(self, question: str, hits: Sequence[Hit], *, language: str) -> list[Hit]:
        if not hits:
            return []
        try:
            async with asyncio.timeout(SECONDS):
                scores = await self._threads.run(lambda: self._rate(question, hits))
        except Exception as error:
            raise RerankError("The reranker failed.") from error
        return by_score(hits, to_unit_range(scores))

    async def aclose(self) -> None:
        """End its thread after the work that is queued."""
        self._threads.stop()

    def _loaded(self) -> BaseNodePostprocessor:
        if self._postprocessor is None:
            self._postprocessor = self._make()
        return self._postprocessor

    def _rate(self, query: str, hits: Sequence[Hit]) -> list[float]:
        """Scores in the order of the hits, on the model's own scale."""
        nodes = [
            NodeWithScore(node=TextNode(id_=str(i), text=hit.chunk.text), score=hit.scores.relevance)
            for i, hit in enumerate(hits)
        ]
        postprocessor = self._loaded()
        if "top_n" in type(postprocessor).model_fields:
            postprocessor = postprocessor.model_copy(update={"top_n": len(nodes)})
        rated = postprocessor.postprocess_nodes(nodes, query_bundle=QueryBundle(query))
        scores = {int(node.node.node_id): float(node.get_score(raise_error=True)) for node in rated}
        if len(scores) != len(hits) or not all(map(math.isfinite, scores.values())):
            raise ValueError(f"{len(scores)} scores for {len(hits)} hits, or a score that is no number")
        return [scores[i] for i in range(len(hits))]


def to_unit_range(scores: Sequence[float]) -> list[float]:
    """The scores as they are if all lie in 0..1, else the sigmoid of each."""
    if all(0 <= score <= 1 for score in scores):
        return list(scores)
    return [1 / (1 + math.exp(-max(-700.0, min(700.0, score)))) for score in scores]


def cross_encoder(model: str, options: Mapping[str, Any]) -> PostprocessorReranker:
    """A cross-encoder by its Hugging Face name or its folder.

    It reads 512 tokens of question and passage together. A name that is not in the local cache is
    downloaded at `warm_up`; a folder never needs the network.
    """

    def make() -> BaseNodePostprocessor:
        torch = import_torch()
        from llama_index.postprocessor.sbert_rerank import SentenceTransformerRerank

        defaults = {
            "model": model,
            "keep_retrieval_score": True,
            "cross_encoder_kwargs": {"activation_fn": torch.nn.Sigmoid()},
        }
        return instantiate(SentenceTransformerRerank, defaults | dict(options), setting="RAG_RERANK_OPTIONS")

    return PostprocessorReranker("sbert", make)
