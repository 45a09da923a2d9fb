"""Answers questions from a team's own documents and proves every answer."""

from importlib import import_module
from typing import Any

__version__ = "1.0.0"
__all__ = ["open_service"]


def __getattr__(name: str) -> Any:
    """Load what the package offers at first use, so that importing it stays quick."""
    if name in __all__:
        return getattr(import_module("rag_service.client"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
