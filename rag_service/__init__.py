"""Answers questions from a team's own documents and proves every answer.

from rag_service import open_service

with open_service() as service:
    service.ingest("documents/")
    print(service.ask("How long do I have to submit expenses?"))
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # for type checkers and editors; a program loads what it uses
    from rag_service.client import CitedAnswer as CitedAnswer
    from rag_service.client import Corpora as Corpora
    from rag_service.client import CorpusView as CorpusView
    from rag_service.client import IngestReport as IngestReport
    from rag_service.client import Passages as Passages
    from rag_service.client import SearchOptions as SearchOptions
    from rag_service.client import Service as Service
    from rag_service.client import open_service as open_service
    from rag_service.errors import RagError as RagError

__version__ = "1.0.0"

_MODULES = {
    "CitedAnswer": "rag_service.client",
    "Corpora": "rag_service.client",
    "CorpusView": "rag_service.client",
    "IngestReport": "rag_service.client",
    "Passages": "rag_service.client",
    "RagError": "rag_service.errors",
    "SearchOptions": "rag_service.client",
    "Service": "rag_service.client",
    "open_service": "rag_service.client",
}
__all__ = [*_MODULES]


def __getattr__(name: str) -> Any:
    """Load a name at its first use, so that importing the package stays quick."""
    if name in _MODULES:
        return getattr(import_module(_MODULES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])  # so that `help` and editors show what is loaded later
