"""Written conversations are read turn by turn, and what a reply is counted as."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evals.conversations.turns import (
    Conversation,
    begins_as_written,
    find_turn_problems,
    read_file,
    read_half,
)
from evals.sets.questions import HALVES

EVIDENCE = [{"file": "sales.csv", "words": "Month: 2024-01"}]
TURN: dict[str, Any] = {
    "asks": "first", "asked": "and in May?", "standalone": "What was sold in May?", "answers": "yes", "gold": "£40",
    "sentences": [{"text": "It was £40", "right": True, "evidence": EVIDENCE}],
    "near": [
        {"kind": "number", "answers": "yes", "sentences": [{"text": "£45", "right": False, "evidence": EVIDENCE}]}
    ],
}  # fmt: skip


def conversation(folder: Path, **changed: Any) -> Conversation:
    row = {"id": "a", "set": "months", "language": "en", "turns": [TURN, TURN, TURN, {**TURN, **changed}]}
    (folder / "a.jsonl").write_text(json.dumps(row), encoding="utf-8")
    return read_file(folder / "a.jsonl", half="developed")[0]


def test_a_near_miss_is_asked_with_the_question_and_the_steps_of_its_turn(tmp_path: Path) -> None:
    turn = conversation(tmp_path, steps=[{"tool": "search", "arguments": {"query": "May"}}]).turns[3]
    miss = turn.near[0]
    assert (miss.question, miss.standalone, miss.of) == ("and in May?", "What was sold in May?", "a.4")
    assert miss.steps == turn.answer.steps and miss.steps[0].tool == "search"
    assert not miss.right and miss.conversation == "a" and miss.half == "developed"


@pytest.mark.parametrize(
    ("changed", "told"),
    [({"asks": "odd"}, "asks is one of"), ({"gold": "£41"}, "does not hold its `gold`"), ({"gold": ""}, "no `gold`")],
)
def test_a_faulty_turn_is_named(tmp_path: Path, changed: dict[str, Any], told: str) -> None:
    problems = find_turn_problems([conversation(tmp_path, **changed)])
    assert len(problems) == 1 and problems[0].startswith("a.4: ") and told in problems[0]


def test_a_conversation_of_two_turns_is_too_short(tmp_path: Path) -> None:
    whole = conversation(tmp_path)
    short = Conversation(id="a", set_name=whole.set_name, language="en", turns=whole.turns[:2])
    assert find_turn_problems([short]) == ["a: it has 4 to 6 turns"]


@pytest.mark.parametrize(
    ("text", "is_clean"),
    [("It was £40 [C1].", True), ("The documents may not answer this. It was £40 [C1].", False)],
)
def test_a_sentence_before_the_models_text_is_noticed(tmp_path: Path, text: str, is_clean: bool) -> None:
    assert begins_as_written(text, conversation(tmp_path).turns[0].answer) is is_clean


def test_the_conversations_have_no_problem_that_shows_without_asking_them() -> None:
    assert [problem for half in HALVES for problem in find_turn_problems(read_half(half))] == []
