"""The project's own documents, for the tests that check them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
SITE = ROOT / ".mkdocs.yml"


def guides() -> list[Path]:
    """README, tutorials, how-to guides and the other pages that tell people what to do, in reading order."""
    pages = _pages(yaml.safe_load(SITE.read_text(encoding="utf-8"))["nav"])
    return [ROOT / "README.md", *(DOCS / page for page in pages if not page.startswith(("reference/", "decisions/")))]


def code_blocks(text: str, language: str) -> list[str]:
    """Fenced blocks of a language, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def _pages(entry: Any) -> Iterator[str]:
    if isinstance(entry, str):
        yield entry
    else:
        for child in entry.values() if isinstance(entry, dict) else entry:
            yield from _pages(child)
