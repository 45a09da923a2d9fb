"""The error tree that users catch."""

from __future__ import annotations

from collections.abc import Iterator

from rag_service import errors
from rag_service.errors import RagError


def tree(kind: type[RagError], depth: int = 0) -> Iterator[str]:
    yield f"    {'  ' * depth}{kind.__name__}"
    for child in kind.__subclasses__():
        if child.__module__ == errors.__name__:
            yield from tree(child, depth + 1)


def test_the_module_shows_its_tree() -> None:
    assert "\n".join(tree(RagError)) in (errors.__doc__ or "")
