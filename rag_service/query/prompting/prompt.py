"""Prompts: templates with declared variables, and untrusted text made harmless before it enters one.

A template is `prompts/<name>.<language>.md`: front matter that declares its variables, then a
`# system` and a `# user` part in which `{{variable}}` is replaced. Text from documents and its
metadata is put between lines that hold a boundary drawn for this request alone, and neutralised first,
see `rag_service.query.guards.untrusted`.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rag_service.definitions import load_yaml, shipped_folder
from rag_service.domain import Hit
from rag_service.errors import DefinitionError
from rag_service.query.guards.untrusted import neutralise, neutralise_metadata
from rag_service.text.words import LANGUAGES

FALLBACK_LANGUAGE = "en"
REQUIRED_MESSAGES = (
    "refusal",
    "nothing_found",
    "no_documents",
    "nothing_selected",
    "not_mentioned",
    "some_rows",
    "withheld",
)
_KNOWN_VARIABLES = frozenset({"boundary", "context", "question", "refusal", "history", "instructions"})
_REQUIRED_VARIABLES = frozenset({"context", "question"})
_VARIABLE = re.compile(r"\{\{\s*(\w+)\s*\}\}")
_FRONT_MATTER = re.compile(r"\A---\n(.*?)\n---\n", re.DOTALL)
_PARTS = re.compile(r"^# (system|user)\s*$", re.MULTILINE)

__all__ = [
    "PromptTemplate",
    "Prompts",
    "load_prompts",
    "neutralise",
    "neutralise_metadata",
    "new_boundary",
    "render_context",
    "render_passage",
]


@dataclass(frozen=True, kw_only=True)
class PromptTemplate:
    """A validated template."""

    name: str
    system: str
    user: str
    variables: frozenset[str]

    def render(self, values: Mapping[str, str]) -> tuple[str, str]:
        """(system, user) with variables replaced once: text that is put in is never expanded again."""

        def replace(part: str) -> str:
            return _VARIABLE.sub(lambda match: values[match.group(1)], part)

        return replace(self.system), replace(self.user)


@dataclass(frozen=True, kw_only=True)
class Prompts:
    """All templates and messages, by language."""

    templates: Mapping[tuple[str, str], PromptTemplate]  # (name, language)
    messages: Mapping[str, Mapping[str, str]]  # key → language → sentence

    def template(self, name: str, language: str) -> PromptTemplate:
        """The template in a language, else in English.

        Raises:
            DefinitionError: there is no template of this name.
        """
        found = self.templates.get((name, language)) or self.templates.get((name, FALLBACK_LANGUAGE))
        if found is None:
            raise DefinitionError(f"There is no prompt {name!r}.", field="prompt")
        return found

    def message(self, key: str, language: str) -> str:
        """A sentence of the service in a language, else in English."""
        by_language = self.messages[key]
        return by_language.get(language) or by_language[FALLBACK_LANGUAGE]


def load_prompts(folder: Path | None = None, *, replacement: Path | None = None) -> Prompts:
    """Load and check all templates.

    Args:
        folder: prompts/ by default.
        replacement: one file that replaces the grounded prompt in every language.

    Raises:
        DefinitionError: names file and mend.
    """
    root = folder or shipped_folder("prompts")
    templates = {}
    for file in sorted(root.glob("*.md")):
        name, _, language = file.stem.partition(".")
        if language not in LANGUAGES:
            raise DefinitionError(f"{file}: name it <prompt>.<language>.md with one of {', '.join(LANGUAGES)}.")
        templates[name, language] = _load_template(file, name)
    if replacement is not None:
        for language in LANGUAGES:
            templates["grounded", language] = _load_template(replacement, "grounded")
    messages_file = root / "messages.yaml"
    messages = load_yaml(messages_file.read_text(encoding="utf-8"))
    for key in REQUIRED_MESSAGES:
        if FALLBACK_LANGUAGE not in (messages or {}).get(key, {}):
            raise DefinitionError(f"{messages_file}: {key}.{FALLBACK_LANGUAGE} is missing; add the sentence.")
    return Prompts(templates=templates, messages=messages)


def _load_template(file: Path, name: str) -> PromptTemplate:
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DefinitionError(f"{file}: cannot be read as UTF-8 text.") from error
    front = _FRONT_MATTER.match(text)
    if front is None:
        raise DefinitionError(f"{file}: begin with front matter that declares `variables: [...]`.")
    declared = frozenset((load_yaml(front.group(1)) or {}).get("variables") or ())
    pieces = _PARTS.split(text[front.end() :])
    parts = dict(zip(pieces[1::2], (piece.strip() for piece in pieces[2::2]), strict=True))
    if set(parts) != {"system", "user"}:
        raise DefinitionError(f"{file}: needs exactly one `# system` and one `# user` part.")
    used = frozenset(_VARIABLE.findall(text[front.end() :]))
    if used != declared:
        odd = ", ".join(sorted(used ^ declared))
        raise DefinitionError(f"{file}: variables: declared and used differ in {odd}; make them equal.")
    if unknown := declared - _KNOWN_VARIABLES:
        raise DefinitionError(f"{file}: variables: unknown: {', '.join(sorted(unknown))}.")
    if missing := _REQUIRED_VARIABLES - declared:
        raise DefinitionError(f"{file}: variables: {', '.join(sorted(missing))} must be used.")
    return PromptTemplate(name=name, system=parts["system"], user=parts["user"], variables=declared)


def new_boundary() -> str:
    """A string that no document can foresee; always the same number of tokens, so that equal prompts count alike."""
    return f"~{secrets.randbelow(10**12):012d}~"


def render_passage(number: int, hit: Hit, boundary: str) -> str:
    """One numbered chunk as the model sees it, with section, document, score and source."""
    document = hit.chunk.document
    section = next((" > ".join(span.location.headings) for span in hit.chunk.spans if span.location.headings), "")
    facts = {
        "document": document.title,
        "section": section,
        "source": document.source or document.file_name or "",
        "score": f"{hit.scores.relevance:.2f}",
    }
    lines = [f"{boundary} [C{number}]"]
    lines += [f"{key}: {neutralise_metadata(value)}" for key, value in facts.items() if value]
    lines += ["", neutralise(hit.chunk.text), boundary]
    return "\n".join(lines)


def render_context(hits: Sequence[Hit], boundary: str) -> str:
    """All shown chunks, [C1] first."""
    return "\n\n".join(render_passage(number, hit, boundary) for number, hit in enumerate(hits, start=1))
