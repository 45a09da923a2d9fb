"""Untrusted text made harmless before it enters a prompt (requirement A7).

What a document or its metadata says is material to read. It must not be able to look like anything
else in the prompt: not like a citation mark, not like the line that ends its own passage, not like a
turn or a role of the conversation, and it must not hold what a reader cannot see. What is changed stays
readable, and only the model's copy is changed: citations are verified against the stored text.

The boundary itself is drawn for each request (Hines et al., "Defending Against Indirect Prompt Injection
Attacks With Spotlighting", 2024, delimiting), so that no document can foresee it.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

METADATA_LENGTH = 200  # characters of a title, section or source that are shown to the model

_LINE_BREAKS = re.compile(r"\r\n?|[\u0085\u2028\u2029\v\f]")
# Characters that show nothing but are no format characters: variation selectors carry smuggled bytes.
_BLANKS = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\ufe00-\ufe0f\U000e0100-\U000e01ef]")
_HIDDEN_CATEGORIES = frozenset({"Cf", "Cn", "Cs"})
_SPACE_CATEGORIES = frozenset({"Cc", "Co"})  # control and private use: PDF bullets are often of the latter

_C = "cCｃＣсСⅽⅭϲϹ"  # letters that look like a C
_MARK_LIKE = re.compile(rf"[\[［【〔〖⟦❲]\s*([{_C}]\s*\d[\d\s,;–{_C}-]*)[\]］】〕〗⟧❳]")

_TILDE = "~∼～˜〜"
_BOUNDARY_LIKE = re.compile(rf"(?<![{_TILDE}])[{_TILDE}]++([ \t]*+[0-9a-fA-F]{{4,}}+[ \t]*+)[{_TILDE}]++")

_ROLE = (
    r"system(?:\s+(?:prompt|message|instructions?))?|assistant|user|human|developer|instructions?|tool"
    r"|sistema|asistente|usuario|desarrollador|instrucciones|syst[eè]me|utilisateur|d[eé]veloppeur|consignes?"
    r"|passages?|pasajes?|question|pregunta|context[oe]?|rules|reglas|r[eè]gles"
)
_ROLE_LINE = re.compile(rf"^([ \t>*_#=-]*+)({_ROLE})([ \t]*+[*_\]>]*+[ \t]*+[:：])", re.IGNORECASE | re.MULTILINE)
_ROLE_HEADING = re.compile(rf"^[ \t]*#{{1,6}}[ \t]*({_ROLE})[ \t#]*$", re.IGNORECASE | re.MULTILINE)
_TURN = re.compile(
    # Of the chat templates of Qwen and OpenAI (<|im_start|>), Llama ([INST], <<SYS>>, <|eot_id|>),
    # Gemma (<start_of_turn>), DeepSeek (<｜User｜>), Mistral ([SYSTEM_PROMPT]) and made-up role tags.
    r"<[|｜][^<>\n]{1,40}[|｜]>|<</?SYS>>|<(?:start|end)_of_(?:turn|text)>|</?s>"
    r"|\[/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS)\]"
    rf"|</?(?:{_ROLE}|think|documents?|prompt)(?:\s[^<>\n]{{0,80}})?>",
    re.IGNORECASE,
)
_HARMLESS = str.maketrans("<>[]|｜", "‹›()¦¦")


@lru_cache(maxsize=256)  # a prompt is rendered three times until it fits, and passages come again
def neutralise(text: str) -> str:
    """Text from a document without authority: no marks, boundaries, turns, roles or hidden characters."""
    visible = _show(_LINE_BREAKS.sub("\n", text))
    visible = _MARK_LIKE.sub(r"(\1)", visible)
    visible = _BOUNDARY_LIKE.sub(r"-\1-", visible)
    visible = _TURN.sub(lambda match: match[0].translate(_HARMLESS), visible)
    visible = _ROLE_HEADING.sub(r"(\1)", visible)
    return _ROLE_LINE.sub(r"\1(\2)\3", visible)


def neutralise_metadata(text: str) -> str:
    """One line of at most 200 characters, neutralised."""
    line = " ".join(neutralise(text).split())
    return line if len(line) <= METADATA_LENGTH else line[: METADATA_LENGTH - 1] + "…"


def _show(text: str) -> str:
    """The text without characters that nobody can see; control characters become spaces."""
    return text if text.isascii() and text.isprintable() else text.translate(_VISIBLE)


class _Visible(dict[int, str | int]):
    """Code point → what is shown of it; looked up once for each character that ever comes."""

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
