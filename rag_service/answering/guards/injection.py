"""Prompt injection in documents: sentences that give a language model orders.

Such a sentence states nothing about the document's subject. What a model writes because a document told it to must
not be verified by that very sentence, and a link in it may not appear in the answer. Where a quote stands in an
injection, the claim is verified again against the passages with injections blanked out, character for character, so
that offsets stay valid.

A paragraph counts as an injection from the first sentence that addresses the model about its instructions, its prompt
or its answer, in any of the languages. The imperative alone does not count: documents are full of it.

This backs up the boundaries of the prompt and does not replace them. It finds most injections, not all. A document
that plainly states a falsehood injects nothing: it is a wrong document.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import replace

import msgspec

from rag_service.answering.guards.addresses import ADDRESSES, POINTS_ON, TRIGGERS
from rag_service.domain import Hit, Span
from rag_service.language.languages import languages_of
from rag_service.language.sentences import split_sentences
from rag_service.language.words import fold
from rag_service.recent import kept_apart

METADATA_LENGTH = 200  # characters of a title, section or source that are shown to the model

_LINE_BREAKS = re.compile(r"\r\n?|[\u0085\u2028\u2029\v\f]")
# Invisible characters that are not format characters; variation selectors can smuggle bytes.
_BLANKS = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\ufe00-\ufe0f\U000e0100-\U000e01ef]")
_HIDDEN_CATEGORIES = frozenset({"Cf", "Cn", "Cs"})
_SPACE_CATEGORIES = frozenset({"Cc", "Co"})  # control and private use: PDF bullets are often of the latter

_C = "cCｃＣсСⅽⅭϲϹ"  # letters that look like a C
_MARK_LIKE = re.compile(rf"[\[［【〔〖⟦❲]\s*([{_C}]\s*\d[\d\s,;–{_C}-]*)[\]］】〕〗⟧❳]")

_TILDE = "~∼～˜〜"
_BOUNDARY_LIKE = re.compile(rf"(?<![{_TILDE}])[{_TILDE}]++([ \t]*+[0-9a-fA-F]{{4,}}+[ \t]*+)[{_TILDE}]++")

_LANGUAGES = languages_of(None)
_ROLE = "|".join(language.injection.role_lines for language in _LANGUAGES)
_ROLE_LINE = re.compile(rf"^([ \t>*_#=-]*+)({_ROLE})([ \t]*+[*_\]>]*+[ \t]*+[:：])", re.IGNORECASE | re.MULTILINE)
_ROLE_HEADING = re.compile(rf"^[ \t]*#{{1,6}}[ \t]*({_ROLE})[ \t#]*$", re.IGNORECASE | re.MULTILINE)
_ROLE_TAG = re.compile(rf"^([ \t>*_#-]*)\[({_ROLE})\](?![(\[:])", re.IGNORECASE | re.MULTILINE)  # no Markdown link
_TURN = re.compile(
    # Of the chat templates of Qwen and OpenAI (<|im_start|>), Llama ([INST], <<SYS>>, <|eot_id|>),
    # Gemma (<start_of_turn>), DeepSeek (<｜User｜>), Mistral ([SYSTEM_PROMPT]) and made-up role tags.
    r"<[|｜][^<>\n]{1,40}[|｜]>|<</?SYS>>|<(?:start|end)_of_(?:turn|text)>|</?s>"
    rf"|\[/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS)\]"
    rf"|</?(?:{_ROLE}|think|documents?|prompt|(?:final_?)?answer|response)(?:\s[^<>\n]{{0,80}})?>",
    re.IGNORECASE,
)
_HARMLESS = str.maketrans("<>[]|｜", "‹›()¦¦")


@kept_apart(256)  # a prompt is rendered up to three times until it fits
def neutralise(text: str) -> str:
    """The text without citation marks, boundaries, turns, roles or hidden characters."""
    visible = _LINE_BREAKS.sub("\n", text)
    if not (visible.isascii() and visible.isprintable()):
        visible = visible.translate(_VISIBLE)
    visible = _MARK_LIKE.sub(r"(\1)", visible)
    visible = _BOUNDARY_LIKE.sub(r"-\1-", visible)
    visible = _TURN.sub(lambda match: match[0].translate(_HARMLESS), visible)
    visible = _ROLE_HEADING.sub(r"(\1)", visible)
    visible = _ROLE_TAG.sub(r"\1(\2)", visible)
    return _ROLE_LINE.sub(r"\1(\2)\3", visible)


@kept_apart(4096)  # chunks of a document share their title
def neutralise_metadata(text: str) -> str:
    """One line of at most 200 characters, neutralised."""
    line = " ".join(neutralise(text).split())
    return line if len(line) <= METADATA_LENGTH else line[: METADATA_LENGTH - 1] + "…"


class _Visible(dict[int, str | int]):
    """Code point → what is shown of it; computed once per character."""

    def __missing__(self, code: int) -> str | int:
        character = chr(code)
        category = unicodedata.category(character)
        shown: str | int = code
        if character not in "\n\t" and category in _SPACE_CATEGORIES:
            shown = " "
        elif category in _HIDDEN_CATEGORIES or _BLANKS.match(character):
            shown = ""
        self[code] = shown
        return shown


_VISIBLE = _Visible()


# Marks and turns of a prompt, in any language.
_FORGED_WORDS = r"(?:{roles})[ :,]{1,3}(?:{say})\b"
_FORGED = (
    r"‹¦[^›]{1,40}¦›|‹/?(?:{roles}|think|(?:final_?)?answer|response)\b|\((?:inst|system_prompt)\)|‹‹/?sys››|-[0-9a-f]{8,}-"
    r"|\((?:{roles})[^)]{0,20}\)[*_ ]*[:：]|^[^\w\n]*\((?:{roles})\)"
)


def _fill(expression: str) -> str:
    for name in ("roles", "prompts", "say"):
        words = "|".join(getattr(language.injection, name) for language in _LANGUAGES)
        expression = expression.replace(f"{{{name}}}", words)
    return expression


_OF_LANGUAGES = tuple(expression for language in _LANGUAGES for expression in language.injection.addresses)
_EXPRESSIONS = "|".join((*ADDRESSES, *_OF_LANGUAGES))
_ADDRESS = re.compile(_fill(rf"\b(?:{_EXPRESSIONS}|{_FORGED_WORDS})|{_FORGED}"), re.MULTILINE | re.DOTALL)
# Looking for these first takes a hundredth of the time.
_TRIGGERS = (
    *("‹", "¦", "(inst"),
    *TRIGGERS,
    *(trigger for language in _LANGUAGES for trigger in language.injection.triggers),
)
# Cyrillic and Greek letters that look like Latin ones.
_LOOKALIKES = str.maketrans("аеорсхуіѕјһԁԛԝօαορνικτυ", "aeopcxyisjhdqwoaopviktu")
_POINTS_ON = re.compile(POINTS_ON)
_HEX = re.compile(r"-[0-9a-f]{8,}-")


@kept_apart(1024)  # passages, titles and headings that are shown come again
def find_injections(text: str) -> tuple[tuple[int, int], ...]:
    """Characters [start, end) of each injection.

    It reaches from its first sentence to the end of the paragraph, or of the next one if it points at what follows.
    """
    if not _addresses(text):
        return ()
    found: list[tuple[int, int]] = []
    for start, end in split_sentences(text):
        same_paragraph = bool(found) and "\n\n" not in text[found[-1][1] : start]
        if found and not same_paragraph and not text[found[-1][1] : start].strip():
            same_paragraph = _POINTS_ON.search(_readable(text[found[-1][0] : found[-1][1]])) is not None
        if not same_paragraph and not _addresses(text[start:end]):
            continue
        if same_paragraph:
            found[-1] = (found[-1][0], end)
        else:
            found.append((start, end))
    return tuple(found) or ((0, len(text)),)  # spread over several sentences: none of the text can be trusted


def _readable(text: str) -> str:
    """A text as the expressions are written: visible, folded, with one blank between words."""
    folded = fold(unicodedata.normalize("NFKC", neutralise(text))).translate(_LOOKALIKES)
    lines = folded.replace("’", "'").splitlines()
    return "\n".join(" ".join(line.split()) for line in lines)


def _addresses(text: str) -> bool:
    readable = f" {_readable(text)}"
    known = any(trigger in readable for trigger in _TRIGGERS) or _HEX.search(readable)
    return bool(known) and _ADDRESS.search(readable) is not None


def without_injections(hit: Hit) -> Hit:
    """The hit with injections blanked out of its text, title and headings; offsets stay valid."""
    chunk = hit.chunk
    text = chunk.text
    for start, end in find_injections(text):
        text = text[:start] + "\n" * (end - start) + text[end:]
    if text != chunk.text:
        chunk = replace(chunk, text=text)
    names = {chunk.document.title}  # they are context of what stands below
    for span in chunk.spans:
        names.update(span.location.headings, (span.location.sheet or "",))
    if any(map(find_injections, names)):
        title = "" if find_injections(chunk.document.title) else chunk.document.title
        spans = tuple(map(_without_headings, chunk.spans))
        chunk = replace(chunk, spans=spans, document=replace(chunk.document, title=title))
    return hit if chunk is hit.chunk else replace(hit, chunk=chunk)


def _without_headings(span: Span) -> Span:
    """The span without headings and sheet names that are injections."""
    location = span.location
    headings = tuple("" if find_injections(heading) else heading for heading in location.headings)
    sheet = "" if location.sheet and find_injections(location.sheet) else location.sheet
    return msgspec.structs.replace(span, location=msgspec.structs.replace(location, headings=headings, sheet=sheet))
