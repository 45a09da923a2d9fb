"""The transformations between reader and store: chunker, those of index.yaml and the caller, embedding."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.ingestion.pipeline import remove_unstable_values
from llama_index.core.node_parser import NodeParser
from llama_index.core.readers.base import BaseReader
from llama_index.core.schema import BaseNode, TransformComponent

from rag_service.errors import EmbeddingError
from rag_service.indices import IndexDefinition
from rag_service.ingest.chunker import Chunker
from rag_service.models.embedding.guarded import guard_of
from rag_service.models.plugins import build, load_class
from rag_service.readers.parse import ReaderClass
from rag_service.store.documents.chunks import WITHOUT_VECTOR
from rag_service.store.documents.uploads import UploadStatus
from rag_service.unpicklable import Unpicklable

Progress = Callable[[UploadStatus, int, int | None], Awaitable[None]]  # (stage, chunks done, chunks in all)


def build_transformations(index: IndexDefinition, more: Sequence[TransformComponent]) -> list[TransformComponent]:
    """All transformations before the embedding: our chunker, unless a node parser is given, and the others in order.

    Raises ConfigurationError if a class of the definition cannot be loaded.
    """
    given = [
        build(plugin.use, plugin.options, TransformComponent, setting=_setting(index, f"transformations[{number}]"))
        for number, plugin in enumerate(index.ingest.transformations)
    ]
    given += more
    has_parser = any(isinstance(component, NodeParser) for component in given)
    return given if has_parser else [Chunker(index.ingest), *given]


def describe_transformation(component: TransformComponent) -> str:
    """Class and configuration of a transformation, equal for two that do the same.

    Addresses of functions and objects are left out: they differ with every start.
    """
    kind = type(component)
    configuration = json.dumps(component.to_dict(), sort_keys=True, default=str)
    return f"{kind.__module__}:{kind.__qualname__} {remove_unstable_values(configuration)}"


def reader_classes(index: IndexDefinition) -> dict[str, ReaderClass]:
    """The definition's readers by extension. Raises ConfigurationError if a class is not a reader."""
    for suffix, plugin in index.ingest.readers.items():
        load_class(plugin.use, BaseReader, setting=_setting(index, f"readers.{suffix}"))
    return {
        suffix: ReaderClass(path=plugin.use, options=plugin.options) for suffix, plugin in index.ingest.readers.items()
    }


def _setting(index: IndexDefinition, key: str) -> str:
    return f"{index.folder / 'index.yaml'}: ingest.{key}"


class EmbedPassages(Unpicklable, TransformComponent):
    """Embeds passages; one that the model cannot embed gets the vector [] and, as metadata, the model's message.

    With `progress` batch by batch: it is called before each and may stop the work by raising. A batch that fails does
    not stop the others: what a cache keeps of them is not embedded again by the next attempt.
    """

    _embedding: BaseEmbedding = PrivateAttr()
    _progress: Progress | None = PrivateAttr()

    def __init__(self, embedding: BaseEmbedding, progress: Progress | None = None):
        super().__init__()
        self._embedding = embedding
        self._progress = progress

    def __call__(self, nodes: Sequence[BaseNode], **_: Any) -> Sequence[BaseNode]:
        raise NotImplementedError("embedding is asynchronous; use acall")

    async def acall(self, nodes: Sequence[BaseNode], **_: Any) -> Sequence[BaseNode]:
        if self._progress is None:
            return await self._embed(nodes)
        size = self._embedding.embed_batch_size
        embedded: list[BaseNode] = []
        failed: EmbeddingError | None = None
        for start in range(0, len(nodes), size):
            await self._progress(UploadStatus.EMBEDDING, start, len(nodes))
            try:
                embedded += await self._embed(nodes[start : start + size])
            except EmbeddingError as error:
                failed = failed or error
        if failed is not None:
            raise failed
        if nodes:
            await self._progress(UploadStatus.STORING, len(nodes), len(nodes))
        return embedded

    async def _embed(self, nodes: Sequence[BaseNode]) -> Sequence[BaseNode]:
        """Embed nodes together; where that fails because of some text, in batches and then one by one."""
        try:
            return await self._embedding.acall(nodes)
        except EmbeddingError as error:
            if error.about_text is None:
                raise
            if len(nodes) == 1:
                await self._require_working(error)
                nodes[0].embedding, nodes[0].metadata[WITHOUT_VECTOR] = [], error.about_text
                return nodes
        size = self._embedding.embed_batch_size
        step = size if len(nodes) > size else 1
        embedded: list[BaseNode] = []
        for start in range(0, len(nodes), step):
            embedded += await self._embed(nodes[start : start + step])
        return embedded

    async def _require_working(self, error: EmbeddingError) -> None:
        """Raise the error of a single text again, unless the model embeds another one at the same time."""
        guarded = guard_of(self._embedding)
        if guarded is not None and not await guarded.is_well():
            raise error
