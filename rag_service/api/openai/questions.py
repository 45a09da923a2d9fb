"""The question in a message of a chat program, which may paste texts around it, or ask for something else.

Open WebUI begins its own prompts with `### Task:`: for titles, tags and follow-up questions as well as around a
question to files that are attached there; the latter have a block `<context>`
(https://github.com/open-webui/open-webui, `backend/open_webui/config.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_TASK = "### Task:"
_CONTEXT = "context"
# A line that opens a pasted block: a tag, or a fence that names a file. Other fences are part of what people ask.
_OPENING = re.compile(
    r"^[ \t]*(?:<(?P<tag>[A-Za-z][\w-]{0,40})(?:[ \t][^<>\n]{0,500})?>|(?P<fence>```)[^\n`]{0,500}\w\.\w{1,8}\b)",
    re.MULTILINE,
)
_TAG = re.compile(r"</?[A-Za-z][\w-]{0,40}>")
_UNCLOSED = 20  # kinds of blocks that nothing closes: what has more is no pasted text


@dataclass(frozen=True, kw_only=True)
class _Block:
    """A pasted text within a message."""

    name: str  # of its tag; "": a fence
    start: int
    end: int


def is_task(message: str) -> bool:
    """Whether a message asks for something about the conversation, such as a title, and nothing of the documents."""
    return message.lstrip().startswith(_TASK) and not any(block.name == _CONTEXT for block in _find_blocks(message))


def question_in(message: str, *, limit: int) -> str:
    """What a message asks, without the texts pasted into it; of a longer one the last part, of at most `limit`
    characters."""
    blocks = list(_find_blocks(message))
    outside, place = [], 0
    for block in blocks:
        outside.append(message[place : block.start])
        place = block.end
    outside.append(message[place:])
    if message.lstrip().startswith(_TASK) and blocks:  # the rest are the program's own instructions
        last = blocks[-1]
        outside = [outside[-1] if outside[-1].strip() else message[last.start : last.end]]
    asked = _TAG.sub("", "".join(outside)) if blocks else message
    return _last_part(asked.strip() or message.strip(), limit)


def title_of(task: str) -> str:
    """A reply to a task without a model: the first words that a person says in it. As JSON if the task asks for that;
    tasks that are not about a title find nothing in it."""
    said = re.search(r"^USER:\s*(\S[^\n]*)", task, re.MULTILINE)
    words = (said[1] if said else task.strip().rpartition("\n")[2]).split()
    title = " ".join(words[:8])[:60].strip(" \"'")
    return f'{{"title": "{_escape(title)}"}}' if "{" in task else title


def _escape(text: str) -> str:
    return "".join(one for one in text.replace("\\", "\\\\").replace('"', '\\"') if one.isprintable())


def _find_blocks(message: str) -> Iterator[_Block]:
    """The pasted texts of several lines, in order."""
    place, unclosed = 0, set[str]()
    while (opening := _OPENING.search(message, place)) and len(unclosed) < _UNCLOSED:
        closing = f"</{opening['tag']}>" if opening["tag"] else f"\n{opening['fence']}"
        end = -1 if closing in unclosed else message.find(closing, opening.end())
        if end < 0:
            unclosed.add(closing)
            place = opening.end()
            continue
        place = end + len(closing)
        if "\n" in message[opening.end() : end] or opening["fence"]:
            yield _Block(name=(opening["tag"] or "").lower(), start=opening.start(), end=place)


def _last_part(text: str, limit: int) -> str:
    """The end of a text that is too long, from the beginning of a paragraph, line, sentence or word."""
    if len(text) <= limit:
        return text
    part = text[-limit:]
    for gap in ("\n\n", "\n", ". ", " "):
        rest = part.partition(gap)[2].strip()
        if len(rest) > limit // 2:
            return rest
    return part
