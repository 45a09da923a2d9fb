"""The written model gives the answers of `evals/written`, and its judge goes by their labels."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from evals.sets.questions import HALVES
from evals.written.answers import Answer, find_problems, read_answer, read_half
from evals.written.dump import accepts
from evals.written.judge import WrittenJudge, draw
from evals.written.model import ModelServer, WrittenModel, find_shown, write_answer

EVIDENCE = {"file": "fees.md", "words": "The fee is £40 a year"}
RIGHT: dict[str, Any] = {
    "id": "a", "set": "months", "language": "en", "question": "What is the fee?", "right": True, "answers": "yes",
    "sentences": [
        {"text": "The fee is £40", "right": True, "evidence": [EVIDENCE]},
        {"text": "Students pay half", "right": True, "evidence": [{"file": "fees.md", "words": "half for students"}]},
    ],
}  # fmt: skip
NEAR = {
    **RIGHT, "id": "a.number", "of": "a", "kind": "number", "right": False,
    "sentences": [{"text": "The fee is £45", "right": False, "evidence": [EVIDENCE]}, RIGHT["sentences"][1]],
}  # fmt: skip
PASSAGES = "~1~ [C1]\nsource: old.md\n\nThe fee is £40 a year\n~1~\n\n~1~ [C2]\nsource: fees.md\n\n{}\n~1~\n\n"
SHOWN = PASSAGES.format("The fee is £40\na year, half for students.")
TOOLS = [{"type": "function", "function": {"name": "search"}}]


def messages(user: str, *more: dict[str, Any]) -> dict[str, Any]:
    return {"messages": [{"role": "system", "content": "Answer."}, {"role": "user", "content": user}, *more]}


def answer(row: dict[str, Any] = RIGHT, **changed: Any) -> Answer:
    return read_answer({**row, **changed})


def judged(judge: str, row: dict[str, Any], prompt: str, **request: Any) -> dict[str, Any]:
    model = WrittenModel(answers=[answer(row)], judge=WrittenJudge(judge))
    reply: dict[str, Any] = json.loads(model.reply({**messages(prompt), **request}).text)
    return reply


VERDICTS = {"response_format": {"json_schema": {"schema": {"properties": {"verdicts": {}}}}}}
LIST = "1. The fee is £45 [C2 “The fee is £40 a year”].\n2. Students pay half.\n"


def test_each_sentence_has_the_mark_of_the_passage_of_its_file_and_the_words() -> None:
    text = write_answer(answer(), find_shown(messages(SHOWN)["messages"]))
    assert text == 'The fee is £40 [C2 "The fee is £40 a year"]. Students pay half [C2 "half for students"].'


def test_a_form_says_where_the_marks_stand_and_what_they_hold() -> None:
    bare = {**RIGHT["sentences"][0], "evidence": [{**EVIDENCE, "says": ""}]}
    written = answer(sentences=[bare, RIGHT["sentences"][1]], form="- The fee is £40 {0}\n- Students pay half {1}")
    text = write_answer(written, find_shown(messages(SHOWN)["messages"]))
    assert text == '- The fee is £40 [C2]\n- Students pay half [C2 "half for students"]'


def test_what_was_not_shown_is_not_said() -> None:
    model = WrittenModel(answers=[answer()])
    reply = model.reply(messages(f"{PASSAGES.format('Nothing here.')}Question: What is the fee?"))
    assert reply.text == "The documents do not answer this question."
    assert model.calls[-1].missing == ["half for students"]


def test_steps_are_taken_before_the_answer_and_their_passages_are_cited() -> None:
    model = WrittenModel(answers=[answer(steps=[{"tool": "search", "arguments": {"query": "fee"}}])])
    first = model.reply({**messages("Question: What is the fee?"), "tools": TOOLS})
    assert first.calls == [("search", {"query": "fee"})]
    second = model.reply({**messages("Question: What is the fee?", {"role": "tool", "content": SHOWN}), "tools": TOOLS})
    assert second.text.startswith('The fee is £40 [C2 "')


def test_a_computed_value_is_cited_with_the_line_of_the_result() -> None:
    computed = {"text": "It is 14", "right": True, "evidence": [{"file": "fees.md", "computed": "14"}]}
    result = {"role": "tool", "content": "~1~ [C3]\nrows: 140\nThe total of Fee is 14\n~1~"}
    shown = find_shown(messages(SHOWN, result)["messages"])
    assert write_answer(answer(sentences=[computed]), shown) == 'It is 14 [C3 "The total of Fee is 14"].'


@pytest.mark.parametrize(
    "prompt", [f"{SHOWN}1. Do this.\n2. Do that.\n\n{LIST}", f"{LIST}\nRules:\n1. Look.\n2. Judge.\n3. Reply."]
)
def test_the_judge_finds_its_sentences_wherever_their_list_stands(prompt: str) -> None:
    reply = judged("right", NEAR, prompt, **VERDICTS)
    assert [one["supported"] for one in reply["verdicts"]] == [False, True]
    assert not accepts(reply)


def test_a_wrong_sentence_is_contradicted_by_the_words_that_it_points_to() -> None:
    wrong = judged("right", NEAR, f"{SHOWN}{LIST}", **VERDICTS)["verdicts"][0]
    assert wrong == {"id": 1, "quote": "The fee is £40 a year", "supported": False, "contradicted": True}


def test_the_head_of_a_table_is_right_and_its_wrong_cell_is_not() -> None:
    reply = judged("right", NEAR, "1. What | Fee\n2. The fee is £45 | yearly\n3. Students pay half", **VERDICTS)
    assert [one["supported"] for one in reply["verdicts"]] == [True, False, True]


def test_a_judge_errs_as_often_as_it_is_told_to_and_always_the_same_way() -> None:
    turned = [draw(f"{number}") < 0.05 for number in range(2000)]
    assert 0.03 < sum(turned) / len(turned) < 0.07
    assert judged("errs", NEAR, LIST, **VERDICTS) == judged("errs", NEAR, LIST, **VERDICTS)


def test_a_judge_that_only_says_yes_passes_its_examination_only_if_it_is_trusted() -> None:
    examination = json.dumps([{"passage": "It opens at 9.", "answers": [
        {"question": "When?", "answers": "other", "claims": [{"sentence": "It opens at 8.", "wrong": "number"}]}
    ]}])  # fmt: skip
    call = {**messages("1. It opens at 8."), **VERDICTS}
    replies = {
        name: json.loads(WrittenModel(judge=WrittenJudge(name, examination)).reply(call).text)
        for name in ("yes", "trusted")
    }
    assert [replies[name]["verdicts"][0]["supported"] for name in ("yes", "trusted")] == [True, False]
    assert [replies[name]["answers"] for name in ("yes", "trusted")] == ["yes", "other"]


@pytest.mark.parametrize("stream", [False, True])
def test_the_server_speaks_the_protocol_whole_and_streamed(stream: bool) -> None:
    model = WrittenModel(answers=[answer()])
    with ModelServer(model) as server:
        body = json.dumps({**messages(f"{SHOWN}Question: What is the fee?"), "stream": stream}).encode()
        request = urllib.request.Request(f"{server.url}/chat/completions", body)  # noqa: S310 - loopback
        with urllib.request.urlopen(request) as reply:  # noqa: S310
            read = reply.read().decode()
    if stream:
        events = [json.loads(line.removeprefix("data: ")) for line in read.splitlines() if line.startswith("data: {")]
        text = "".join(one["choices"][0]["delta"].get("content", "") for one in events)
        assert read.rstrip().endswith("data: [DONE]")
    else:
        text = json.loads(read)["choices"][0]["message"]["content"]
    assert text.startswith("The fee is £40 [C2")


def test_the_answers_have_no_problem_that_shows_without_asking_them() -> None:
    assert [problem for half in HALVES for problem in find_problems(read_half(half))] == []


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"kind": "odd"}, "one kind"),
        ({"of": "b"}, "no right answer"),
        ({"question": "Another?"}, "question and set"),
        ({"sentences": RIGHT["sentences"]}, "nothing in it is wrong"),
        ({"form": "The fee is £44 {0}"}, "the form does not hold"),
        ({"set": "nowhere"}, "no set"),
    ],
)
def test_a_faulty_near_miss_is_named(changed: dict[str, Any], told: str) -> None:
    twin, near = answer(sentences=RIGHT["sentences"]), answer(NEAR, **changed)
    assert any("a.number" in problem and told in problem for problem in find_problems([twin, near]))


def test_a_line_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "blind").mkdir()
    (tmp_path / "blind" / "x.jsonl").write_text('\n{"id": "a"}\n', encoding="utf-8")
    with pytest.raises(ValueError, match=r"x\.jsonl:2"):
        read_half("blind", tmp_path)


def test_the_judge_quotes_the_line_of_a_computed_value_however_it_is_written() -> None:
    computed = {"text": "It is £2,080.50", "right": True, "evidence": [{"file": "fees.md", "computed": "2,080.50"}]}
    prompt = "~1~ [C3]\nEl total es 2.080,50 €\n~1~\n1. It is £2,080.50 [C3]"
    (verdict,) = judged("right", {**RIGHT, "sentences": [computed]}, prompt, **VERDICTS)["verdicts"]
    assert verdict == {"id": 1, "quote": "El total es 2.080,50 €", "supported": True, "contradicted": False}


def test_a_text_that_nobody_wrote_is_not_supported_and_answers_nothing() -> None:
    reply = judged("right", RIGHT, "1. The documents do not answer this question.", **VERDICTS)
    assert not reply["verdicts"][0]["supported"] and reply["answers"] == "other"


@pytest.mark.parametrize("rule", ["sonst nichts: Nein.", "rien d'autre : Non.", "nothing else: No."])
def test_the_model_refuses_with_the_sentence_that_the_prompt_gives(rule: str) -> None:
    model = WrittenModel(answers=[answer()])
    request = messages(f"{PASSAGES.format('Nothing.')}Question: What is the fee?")
    request["messages"][0]["content"] = f"4. Reply with this and {rule}\n5. Be brief."
    assert model.reply(request).text in ("Nein.", "Non.", "No.")
