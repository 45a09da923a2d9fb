"""The project's own documents, for the tests that hold them to their word."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
GUIDES = ROOT / "rag_service" / "guides"


def guides() -> list[Path]:
    """README and guides."""
    return [ROOT / "README.md", *sorted(GUIDES.glob("*.md"))]


def code_blocks(text: str, language: str) -> list[str]:
    """Fenced blocks of a language, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
