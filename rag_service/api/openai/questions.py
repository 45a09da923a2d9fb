"""The question in a message of a chat program, which may paste texts around it, or ask for something else.

Open WebUI begins its own prompts with `### Task:`: for titles, tags and follow-up questions as well as around a
question to files that are attached there; the latter have a block `<context>`
(https://github.com/open-webui/open-webui, `backend/open_webui/config.py`). They name the JSON that they want.
LibreChat asks for a title of a conversation that follows, speaker by speaker
(https://github.com/danny-avila/agents, `src/utils/title.ts`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_TASK = "### Task:"
_CONTEXT = "context"
# A line that opens a pasted block: a tag, or a fence that names a file. Other fences are part of what people ask.
_OPENING = re.compile(
    r"^[ \t]*(?:<(?P<tag>[A-Za-z][\w-]{0,40})(?:[ \t][^<>\n]{0,500})?>|(?P<fence>```)[^\n`]{0,500}\w\.\w{1,8}\b)",
    re.MULTILINE,
)
_TAG = re.compile(r"</?[A-Za-z][\w-]{0,40}>")
# The JSON that a task wants: its only field, which holds a list or a text.
_WANTED = re.compile(r'\{\s*"(?P<key>\w{1,40})"\s*:\s*(?P<value>["\[])')
_SAID = re.compile(r"^(?:USER|User|Human):\s*(?P<words>\S[^\n]*)", re.MULTILINE)
_REPLIED = re.compile(r"^(?:AI|Assistant|ASSISTANT):", re.MULTILINE)
_UNCLOSED = 20  # kinds of blocks that nothing closes: what has more is no pasted text


@dataclass(frozen=True, kw_only=True)
class _Block:
    """A pasted text within a message."""

    name: str  # of its tag; "": a fence
    start: int
    end: int


def is_task(message: str) -> bool:
    """Whether a message asks for something about the conversation, such as a title, and nothing of the documents."""
    if message.lstrip().startswith(_TASK):
        return not any(block.name == _CONTEXT for block in _find_blocks(message))
    said = _SAID.search(message)
    before = message[: said.start()].lower() if said else ""
    return "title" in before and "conversation" in before and _REPLIED.search(message) is not None


def question_in(message: str, *, limit: int) -> str:
    """What a message asks, without the texts pasted into it; of a longer one the last part, of at most `limit`
    characters."""
    blocks = list(_find_blocks(message))
    outside = _outside(message, blocks)
    if message.lstrip().startswith(_TASK) and blocks:  # the rest are the program's own instructions
        last = blocks[-1]
        outside = [outside[-1] if outside[-1].strip() else message[last.start : last.end]]
    asked = _TAG.sub("", "".join(outside)) if blocks else message
    return _last_part(asked.strip() or message.strip(), limit)


def reply_without_model(task: str) -> str:
    """What a task gets without a model, as JSON if it asks for that.

    A title is the first words that a person says in it, a search query the last thing said. Anything else is empty.
    """
    said = [one["words"].strip() for one in _SAID.finditer(task)] or [task.strip().rpartition("\n")[2]]
    title = " ".join(said[0].split()[:8])[:60].strip(" \"'")
    wanted = _WANTED.search("".join(_outside(task, list(_find_blocks(task)))))
    if wanted is None:
        return title
    given: dict[str, list[str] | str] = {"title": title, "queries": said[-1:]}
    key = wanted["key"]
    return json.dumps({key: given.get(key, [] if wanted["value"] == "[" else "")}, ensure_ascii=False)


def _outside(message: str, blocks: Sequence[_Block]) -> list[str]:
    """The parts of a message before, between and after its blocks."""
    starts = [0, *(block.end for block in blocks)]
    ends = [*(block.start for block in blocks), len(message)]
    return [message[start:end] for start, end in zip(starts, ends, strict=True)]


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
