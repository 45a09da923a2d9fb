"""Written conversations: what a person asks one after the other, and what a capable model answers."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evals.written.answers import Answer, find_problems, fold, read_answer

FOLDER = Path(__file__).parent
ASKS = (  # what a turn asks for
    "first", "pronoun", "ellipsis", "comparison", "correction", "version", "reckoning", "form", "language", "source",
    "sure", "thanks", "subject", "back",
)  # fmt: skip
_MARK = re.compile(r"\[C\d+\]")
_FIRST = 30  # letters and digits by which a written reply is recognised


@dataclass(frozen=True, kw_only=True)
class Turn:
    """What is asked, what is answered, and near misses of that answer."""

    asks: str
    answer: Answer
    near: tuple[Answer, ...]


@dataclass(frozen=True, kw_only=True)
class Conversation:
    """Turns over the files of one set."""

    id: str
    set_name: str
    language: str  # ISO 639-1, of most turns
    turns: tuple[Turn, ...]


def read_half(half: str, folder: Path = FOLDER) -> list[Conversation]:
    """Read all files of a half. Raises ValueError, which names the line, if one is wrong."""
    return [one for path in sorted((folder / half).glob("*.jsonl")) for one in read_file(path, half=half)]


def read_file(path: Path, *, half: str = "") -> list[Conversation]:
    """Read a file with a conversation a line. Raises ValueError, which names the line, if one is wrong."""
    found = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if not line.strip():
            continue
        try:
            found.append(_read_conversation(json.loads(line), half))
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{path}:{number}: {error!r}") from error
    return found


def _read_conversation(row: Mapping[str, Any], half: str) -> Conversation:
    turns = tuple(read_turn(row, turn, half=half, number=number) for number, turn in enumerate(row["turns"], start=1))
    return Conversation(id=row["id"], set_name=row["set"], language=row["language"], turns=turns)


def read_turn(row: Mapping[str, Any], turn: Mapping[str, Any], *, half: str, number: int) -> Turn:
    """Read a turn of the conversation in a row."""
    shared = {"set": row["set"], "conversation": row["id"], "half": half, "question": turn["asked"]}
    shared |= {"language": turn.get("language", row["language"]), "standalone": turn["standalone"]}
    shared |= {"steps": turn.get("steps", ()), "id": f"{row['id']}.{number}"}
    own = {key: turn[key] for key in ("sentences", "answers", "form", "style", "gold") if key in turn}
    answer = read_answer({**shared, "right": True, **own})
    near = tuple(
        read_answer({**shared, "right": False, **miss, "of": answer.id, "id": f"{answer.id}.{miss['kind']}-{count}"})
        for count, miss in enumerate(turn.get("near", ()), start=1)
    )
    return Turn(asks=turn["asks"], answer=answer, near=near)


def find_turn_problems(conversations: Sequence[Conversation]) -> list[str]:
    """Return what is wrong with conversations, one line each, as far as it shows without asking them."""
    answers = [answer for one in conversations for turn in one.turns for answer in (turn.answer, *turn.near)]
    return [*find_problems(answers), *(problem for one in conversations for problem in _problems_of(one))]


def _problems_of(conversation: Conversation) -> Iterable[str]:
    if not 4 <= len(conversation.turns) <= 6:
        yield f"{conversation.id}: it has 4 to 6 turns"
    for turn in conversation.turns:
        if turn.asks not in ASKS:
            yield f"{turn.answer.id}: asks is one of {', '.join(ASKS)}"
        if not turn.answer.gold:
            yield f"{turn.answer.id}: it has no `gold`"
        if turn.answer.gold and not re.search(turn.answer.gold, say(turn.answer), re.DOTALL):
            yield f"{turn.answer.id}: its own answer does not hold its `gold`"


def count_turns(conversations: Sequence[Conversation]) -> dict[str, dict[str, int]]:
    """Return counts of conversations by what README.md asks for."""
    turns = [turn for one in conversations for turn in one.turns]
    return {
        "conversations": {"all": len(conversations), "turns": len(turns), "near": sum(len(one.near) for one in turns)},
        "language": dict(Counter(one.language for one in conversations).most_common()),
        "asks": dict(Counter(turn.asks for turn in turns).most_common()),
        "near misses": dict(Counter(miss.kind for turn in turns for miss in turn.near).most_common()),
    }


def say(answer: Answer) -> str:
    """Return what an answer says, without marks."""
    return re.sub(r"\{\d+\}", "", answer.form) or ". ".join(sentence.text for sentence in answer.sentences)


def begins_as_written(text: str, answer: Answer) -> bool:
    """Return whether a reply begins with what the model wrote: nothing was put before it."""
    return fold(_MARK.sub("", text)).startswith(fold(say(answer).split("[")[0])[:_FIRST])
