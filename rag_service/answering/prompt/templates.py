"""Prompts: templates with declared variables, and untrusted text made harmless before it enters one.

A template is `prompts/<name>.<language>.md`: front matter that declares its variables, then a `# system` and a `# user`
part in which `{{variable}}` is replaced. `grounded` has a part `# conversation`, too, which stands where
`{{conversation}}` does if anything was said before. Text from documents and its metadata is put between lines that hold
a boundary drawn for this request alone, and neutralised first, see `rag_service.answering.guards.injection`.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from rag_service.answering.guards.injection import neutralise, neutralise_metadata
from rag_service.domain import Hit
from rag_service.errors import DefinitionError
from rag_service.indices import load_yaml, shipped_folder
from rag_service.language.languages import FALLBACK_LANGUAGE, language_name, language_names

REQUIRED_MESSAGES = (
    "refusal",
    "nothing_found",
    "no_documents",
    "nothing_selected",
    "not_mentioned",
    "withheld",
)
_JUDGE_VARIABLES = frozenset({"boundary", "question", "sentences"})
_KNOWN_VARIABLES = frozenset(
    {
        "boundary",
        "case",
        "context",
        "conversation",
        "history",
        "instructions",
        "language",
        "question",
        "refusal",
        "schema",
    }
)
_OPTIONAL = ("conversation", "instructions")  # where one is empty, its line goes
_REQUIRED_VARIABLES = frozenset({"context", "question"})
_VARIABLE = re.compile(r"\{\{\s*(\w+)\s*\}\}")
_LANGUAGE = re.compile(r"\{\{\s*language\s*\}\}")
_FRONT_MATTER = re.compile(r"\A---\n(.*?)\n---\n", re.DOTALL)
AGENT_PROMPT = "chat"  # of agents, in folders of prompts that have one; else `grounded`
SCHEMA_PROMPT = "extract"  # of answers as JSON
NO_HISTORY = "-"
_SHARED = "Shared documents:"
_PERSONAL = "The asker's own documents:"
_PARTS = re.compile(r"^# (system|conversation|user)\s*$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class PromptTemplate:
    """A validated template."""

    system: str
    user: str
    conversation: str = ""  # what stands for `{{conversation}}` if there is a history

    def render(self, values: Mapping[str, str]) -> tuple[str, str]:
        """Return (system, user) with variables replaced once: text that is put in is never expanded again."""
        if "history" in values and "conversation" not in values:
            said = values["history"] not in ("", NO_HISTORY)
            values = {**values, "conversation": _fill(self.conversation, values) if said else ""}
        return _fill(self.system, values), self.user_text(values)

    def user_text(self, values: Mapping[str, str]) -> str:
        """Return the user part alone."""
        return _fill(self.user, values)


@dataclass(frozen=True, kw_only=True)
class Prompts:
    """All templates and messages, by language."""

    templates: Mapping[tuple[str, str], PromptTemplate]  # (name, language)
    messages: Mapping[str, Mapping[str, str]]  # key → language → sentence

    def template(self, name: str, language: str) -> PromptTemplate:
        """Return the template in a language, else in English, which then asks for a reply in that language.

        Raises:
            DefinitionError: there is no template of this name.
        """
        if name == AGENT_PROMPT and (name, FALLBACK_LANGUAGE) not in self.templates:
            name = "grounded"
        found = self.templates.get((name, language)) or self.templates.get((name, FALLBACK_LANGUAGE))
        if found is None:
            raise DefinitionError(f"There is no prompt {name!r}.", field="prompt")
        system, user = (_LANGUAGE.sub(language_name(language), part) for part in (found.system, found.user))
        return PromptTemplate(system=system, user=user, conversation=found.conversation)

    def samples(self) -> dict[str, str]:
        """A text in each language: the rules of the grounded prompt."""
        return {language: found.system for (name, language), found in self.templates.items() if name == "grounded"}

    def message(self, key: str, language: str) -> str:
        """A sentence of the service in a language, else in English."""
        by_language = self.messages[key]
        return by_language.get(language) or by_language[FALLBACK_LANGUAGE]


def load_prompts(folder: Path | None = None, *, replacement: Path | None = None) -> Prompts:
    """Load and check all templates.

    Args:
        folder: prompts/ by default. A prompt that it lacks in all languages, or messages.yaml, is the
            packaged one.
        replacement: one file that replaces the grounded prompt in every language.

    Raises:
        DefinitionError: a file is invalid; says how to fix it.
    """
    root = folder or shipped_folder("prompts")
    if not root.is_dir():
        raise DefinitionError(f"{root} is not a folder; correct RAG_PROMPTS_PATH.")
    templates = {}
    own_names = {file.stem.partition(".")[0] for file in root.glob("*.md")}
    packaged = [file for file in shipped_folder("prompts").glob("*.md") if file.stem.partition(".")[0] not in own_names]
    for file in sorted([*root.glob("*.md"), *packaged]):
        name, _, language = file.stem.partition(".")
        if language not in language_names():
            raise DefinitionError(f"{file}: name it <prompt>.<language>.md, with an ISO 639-1 code such as en or de.")
        templates[name, language] = _load_template(file, name)
    if replacement is not None:
        for language in {language for name, language in templates if name == "grounded"}:
            templates["grounded", language] = _load_template(replacement, "grounded")
    packaged_file = shipped_folder("prompts") / "messages.yaml"
    messages_file = root / "messages.yaml" if (root / "messages.yaml").exists() else packaged_file
    messages = load_yaml(messages_file.read_text(encoding="utf-8"))
    templates = {key: _completed(template, key) for key, template in templates.items()}
    for key in REQUIRED_MESSAGES:
        if FALLBACK_LANGUAGE not in (messages or {}).get(key, {}):
            raise DefinitionError(f"{messages_file}: {key}.{FALLBACK_LANGUAGE} is missing; add the sentence.")
    packaged_messages = load_yaml(packaged_file.read_text(encoding="utf-8"))
    return Prompts(templates=templates, messages={**packaged_messages, **messages})


def _completed(template: PromptTemplate, key: tuple[str, str]) -> PromptTemplate:
    """A grounded prompt of an older folder, with the variables that it does not know yet."""
    name, language = key
    if name != "grounded":
        return template
    system, user, conversation = template.system, template.user, template.conversation
    if "{{instructions}}" not in system:
        system = f"{{{{instructions}}}}\n\n{system}"
    if "{{conversation}}" not in user and "{{history}}" not in user:
        user = f"{{{{conversation}}}}\n\n{user}"
    if not conversation:
        packaged = shipped_folder("prompts")
        own = packaged / f"grounded.{language}.md"
        conversation = _load_template(own if own.exists() else packaged / "grounded.en.md", name).conversation
    return PromptTemplate(system=system, user=user, conversation=conversation)


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
    if name == "judge":
        if set(parts) != {"user"}:
            raise DefinitionError(
                f"{file}: needs a `# user` part and no other: the task is put at the end of the prompt that the answer"
                " was written from, whose system text stays."
            )
        parts["system"] = ""
    elif set(parts) - {"conversation"} != {"system", "user"}:
        raise DefinitionError(f"{file}: needs exactly one `# system` and one `# user` part.")
    used = frozenset(_VARIABLE.findall(text[front.end() :]))
    if used != declared:
        odd = ", ".join(sorted(used ^ declared))
        raise DefinitionError(f"{file}: variables: declared and used differ in {odd}; make them equal.")
    known, required = _KNOWN_VARIABLES, _REQUIRED_VARIABLES
    if name == "judge":
        known = required = _JUDGE_VARIABLES
    if unknown := declared - known:
        raise DefinitionError(f"{file}: variables: unknown: {', '.join(sorted(unknown))}.")
    if missing := required - declared:
        raise DefinitionError(f"{file}: variables: {', '.join(sorted(missing))} must be used.")
    return PromptTemplate(system=parts["system"], user=parts["user"], conversation=parts.get("conversation", ""))


def _fill(part: str, values: Mapping[str, str]) -> str:
    for name in _OPTIONAL:
        if not values.get(name):
            part = part.replace(f"{{{{{name}}}}}\n\n", "")
    pieces = _VARIABLE.split(part)  # text, name, text, name, …, text
    pieces[1::2] = map(values.__getitem__, pieces[1::2])
    return "".join(pieces)


def new_boundary() -> str:
    """A string that no document can foresee; always the same number of tokens, so that equal prompts count alike."""
    return f"~{secrets.randbelow(10**12):012d}~"


def render_passage(number: int, hit: Hit, boundary: str) -> str:
    """One numbered chunk as the model sees it, with section, document, score and source."""
    document, section = hit.chunk.document, ""
    for span in hit.chunk.spans:
        if span.location.headings:
            section = " > ".join(span.location.headings)
            break
    written = {
        "document": document.title,
        "section": section,
        "source": document.source or document.file_name or "",
    }
    lines = [f"{boundary} [C{number}]"]
    lines += [f"{key}: {neutralise_metadata(value)}" for key, value in written.items() if value]
    if document.dated is not None:
        lines.append(f"date: {document.dated.isoformat()}")
    lines.append(f"score: {hit.scores.relevance:.2f}")
    return "\n".join([*lines, "", neutralise(hit.chunk.text), boundary])


def render_context(hits: Sequence[Hit | None], boundary: str, personal: Set[UUID] = frozenset()) -> str:
    """Return all passages, [C1] first; None leaves a number out.

    Headings separate those of the asker's own `personal` corpora from shared ones.
    """
    own = [hit is not None and hit.chunk.document.corpus_id in personal for hit in hits]
    has_own = any(own)
    parts: list[str] = []
    for number, (hit, is_own) in enumerate(zip(hits, own, strict=True), start=1):
        if hit is None:
            continue
        if has_own and (number == 1 or is_own != own[number - 2]):
            parts.append(_PERSONAL if is_own else _SHARED)
        parts.append(render_passage(number, hit, boundary))
    return "\n\n".join(parts)
