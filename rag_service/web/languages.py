"""Which language a visitor reads, and the page's words in it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

LANGUAGES: Mapping[str, str] = {"en": "English", "es": "Español", "fr": "Français"}  # code → its own name
DEFAULT = "en"
FOLDER = Path(__file__).parent / "strings"


def load_strings(folder: Path = FOLDER) -> dict[str, dict[str, Any]]:
    """Words by language: `page` for the templates, `client` for the scripts."""
    return {code: json.loads((folder / f"{code}.json").read_text(encoding="utf-8")) for code in LANGUAGES}


def choose_language(remembered: str | None, accepted: str) -> str:
    """The language chosen before, else the best one the browser asks for, else English.

    Args:
        remembered: from the cookie; untrusted.
        accepted: the Accept-Language header (RFC 9110, section 12.5.4), possibly empty.
    """
    if remembered is not None and remembered in LANGUAGES:
        return remembered
    wanted = [(quality, code) for code, quality in _read_preferences(accepted) if quality > 0]
    return next((code for _, code in sorted(wanted, key=lambda pair: -pair[0]) if code in LANGUAGES), DEFAULT)


def _read_preferences(accepted: str) -> list[tuple[str, float]]:
    preferences = []
    for part in accepted.split(",")[:50]:
        tag, _, parameter = part.strip().partition(";")
        try:
            quality = float(parameter.strip().removeprefix("q=") or 1)
        except ValueError:
            quality = 0.0
        preferences.append((tag.strip().lower().split("-")[0], quality))
    return preferences
