"""Which language a visitor reads, and the page's words in it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from rag_service.api.http.languages import read_preferences
from rag_service.indices import load_yaml, shipped_folder

_DEFAULT = "en"
_NOTES = (
    "not_mentioned", "no_such_file", "similar_files", "searched_files", "nothing_in_files", "doubtful", "model_failed",
    "unfinished", "withheld",
)  # fmt: skip
_FOLDER = Path(__file__).parent / "strings"


@cache
def load_strings() -> Mapping[str, Mapping[str, Any]]:
    """Texts by language: its own `name`, `page` for the templates, `client` for the scripts.

    The scripts also get the sentences of the reasons for a decision, and in all languages those that the service writes
    into answers (`notes`).
    """
    strings = {file.stem: json.loads(file.read_text(encoding="utf-8")) for file in sorted(_FOLDER.glob("*.json"))}
    messages = load_yaml((shipped_folder("prompts") / "messages.yaml").read_text(encoding="utf-8"))
    for key, by_language in messages.items():
        if key.startswith("reason_"):
            for code, texts in strings.items():
                texts["client"][key] = by_language.get(code) or by_language[_DEFAULT]
    notes = [words for key in _NOTES for words in messages[key].values()]
    for texts in strings.values():
        texts["client"]["notes"] = notes
    return strings


def choose_language(remembered: str | None, accepted: str) -> str:
    """The language in the (untrusted) cookie, else the best match of Accept-Language, else English."""
    if remembered is not None and remembered in load_strings():
        return remembered
    return next((code for code in read_preferences(accepted) if code in load_strings()), _DEFAULT)
