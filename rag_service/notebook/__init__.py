"""The service from Python: `from rag_service import open_service` (requirement F6).

with open_service() as service:
    service.ingest("documents/")
    service.ask("How long do I have to …?")
"""

from __future__ import annotations

import warnings

import structlog

from rag_service.errors import ConfigurationError
from rag_service.notebook.backend import Where
from rag_service.notebook.plot import LinePlot, line_plot
from rag_service.notebook.results import CitedAnswer, IngestedFile, IngestReport, Passages, Table, table
from rag_service.notebook.service import Corpora, CorpusView, Service
from rag_service.settings import Settings, load_settings

__all__ = [
    "CitedAnswer",
    "Corpora",
    "CorpusView",
    "IngestReport",
    "IngestedFile",
    "LinePlot",
    "Passages",
    "Service",
    "Table",
    "Where",
    "line_plot",
    "open_service",
    "table",
]


def open_service(*, url: str | None = None, api_key: str | None = None, **settings: object) -> Service:
    """Open a service in this process, or connect to one that runs elsewhere.

    Args:
        url: base URL of a running service; None opens one here, with its own database in RAG_DATA_DIR.
        api_key: API key or bearer token for `url`.
        settings: fields of `Settings` that win over the environment, such as `data_dir="knowledge"`;
            only without `url`.

    Raises:
        ConfigurationError: a setting is wrong or unknown, or does not go with `url`.
        StoreError: the database cannot be opened.
        ServiceUnreachableError: nothing answers at `url`.
    """
    if url is not None:
        return _connect(url, api_key, settings)
    if api_key is not None:
        raise ConfigurationError("api_key goes with url; a service in this process needs none.", field="api_key")
    from rag_service.notebook.backend import EmbeddedBackend

    loaded = load_settings(**{"log_level": "WARNING", "log_format": "console", **settings})
    _keep_output_clean(loaded)
    return Service(EmbeddedBackend(settings=loaded))


def _connect(url: str, api_key: str | None, settings: dict[str, object]) -> Service:
    from rag_service.notebook.remote import RemoteBackend

    if settings:
        raise ConfigurationError(
            f"A remote service has its own settings: leave out {', '.join(settings)}.", field=next(iter(settings))
        )
    return Service(RemoteBackend(url, api_key))


def _keep_output_clean(settings: Settings) -> None:
    """Without a set-up of the caller's own, structlog would print every line below the cell."""
    from rag_service.telemetry import configure_logging

    if not structlog.is_configured():
        configure_logging(settings)
    # tqdm, which the embedding library loads, asks for Jupyter widgets that nothing here draws.
    warnings.filterwarnings("ignore", message="IProgress not found")
