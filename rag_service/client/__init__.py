"""The service from Python: `from rag_service import open_service`.

with open_service() as service:
    service.ingest("documents/")
    service.ask("How long do I have to …?")
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import structlog

from rag_service.client.asking import AskOptions, SearchOptions
from rag_service.client.records import records
from rag_service.client.results import (
    CitedAnswer,
    Documents,
    ImportReport,
    IngestedFile,
    IngestReport,
    Passages,
    Table,
    table,
)
from rag_service.client.service import Corpora, CorpusView, Service
from rag_service.errors import ConfigurationError
from rag_service.settings import load_settings

if TYPE_CHECKING:  # importing the package must not load LlamaIndex
    from llama_index.core.base.embeddings.base import BaseEmbedding
    from llama_index.core.llms import LLM
    from llama_index.core.postprocessor.types import BaseNodePostprocessor
    from llama_index.core.readers.base import BaseReader
    from llama_index.core.schema import TransformComponent

    from rag_service.models.judge.judge import Judge

__all__ = [
    "AskOptions",
    "CitedAnswer",
    "Corpora",
    "CorpusView",
    "Documents",
    "ImportReport",
    "IngestReport",
    "IngestedFile",
    "Passages",
    "SearchOptions",
    "Service",
    "Table",
    "open_service",
    "records",
    "table",
]


def open_service(
    *,
    url: str | None = None,
    api_key: str | None = None,
    llm: LLM | None = None,
    embedding: BaseEmbedding | None = None,
    reranker: BaseNodePostprocessor | None = None,
    judge: Judge | None = None,
    postprocessors: Sequence[BaseNodePostprocessor] = (),
    readers: Mapping[str, type[BaseReader]] | None = None,
    transformations: Sequence[TransformComponent] = (),
    **settings: object,
) -> Service:
    """Open a service in this process, or connect to one that runs elsewhere.

    Args:
        url: base URL of a running service; None opens one here, with its own database in RAG_DATA_DIR.
        api_key: API key or bearer token for `url`.
        llm, embedding, reranker: LlamaIndex objects instead of what the settings name.
        judge: says whether a passage entails a reworded sentence, instead of what RAG_JUDGE names.
        postprocessors, transformations: LlamaIndex objects that run after those of the index definition, in order.
        readers: LlamaIndex reader classes by extension, such as `{".log": LogReader}`. They run in a sandboxed
            process of their own, and must be importable there.
        settings: settings that win over the environment, such as `data_dir="knowledge"` or
            `chat_options={"threads": 2}`.

    All but `url` and `api_key` are for a service in this process.

    Raises:
        ConfigurationError: a setting is wrong or unknown, or does not go with `url`.
        StoreError: the database cannot be opened.
        ServiceUnreachableError: nothing answers at `url`.
    """
    objects: dict[str, Any] = {
        "llm": llm,
        "embedding": embedding,
        "reranker": reranker,
        "judge": judge,
        "postprocessors": postprocessors,
        "readers": readers,
        "transformations": transformations,
    }
    if url is not None:
        from rag_service.client.remote import RemoteBackend

        forbidden = [*settings, *(name for name, value in objects.items() if value)]
        if forbidden:
            raise ConfigurationError(
                f"A remote service has its own settings: remove {', '.join(forbidden)}.", field=forbidden[0]
            )
        return Service(RemoteBackend(url, api_key))
    if api_key is not None:
        raise ConfigurationError(
            "api_key can only be used with url; a service in this process needs no key.", field="api_key"
        )
    from rag_service.client.embedded import EmbeddedBackend
    from rag_service.components import Plugins
    from rag_service.observability.logs import configure_logging

    loaded = load_settings(**{"log_level": "WARNING", "log_format": "console", **settings})
    if not structlog.is_configured():  # structlog's default would print every line below the cell
        configure_logging(loaded)
    # tqdm, which the embedding library loads, asks for Jupyter widgets that are not used.
    warnings.filterwarnings("ignore", message="IProgress not found")
    plugins = Plugins(**objects)
    return Service(EmbeddedBackend(settings=plugins.settings(loaded), plugins=plugins))
