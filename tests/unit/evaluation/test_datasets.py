"""Eval sets: what each format gives, and that a mistake is told with file, line, key and mend."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rag_service.errors import EvalSetError
from rag_service.evaluation.datasets import load_set
from rag_service.evaluation.eval_set import SetKind, leave_out, leave_passages_out, translate_questions, translate_sets
from tests.unit.evaluation.sets import own_row, squad, write_beir, write_documents, write_jsonl


def write_squad(file: Path, data: Any) -> Path:
    file.write_text(json.dumps(data))
    return file


def test_own_questions_name_documents_by_file_stem_or_article(tmp_path: Path) -> None:
    folder = write_documents(tmp_path / "documents")
    file = write_jsonl(
        tmp_path / "set.jsonl",
        own_row(),
        own_row(id="q2", documents=..., procedures=["leave"]),
        own_row(id="q3", documents=..., articles=["RK-1"], sections=...),
        own_row(id="q4", answerable=False, documents=[], answers=[]),
    )
    loaded = load_set(file, documents=folder)
    assert loaded.kind is SetKind.OWN
    assert [dict(question.targets) for question in loaded.questions] == [
        {"loan.md": 1}, {"leave.txt": 1}, {"loan.md": 1}, {},
    ]  # fmt: skip
    assert [question.answerable for question in loaded.questions] == [True, True, True, False]
    assert loaded.questions[0].sections == ("Loan",)


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ("{broken", "is not a JSON object"),
        ("[1]", "must be a JSON object"),
        (own_row(question=...), "question: must be a text"),
        (own_row(question=" "), "question: must be a text"),
        (own_row(answers=[]), "answers: is empty; an answerable question needs it"),
        (own_row(answers=...), "answers: must be a list of texts"),
        (own_row(answers="75"), "answers: must be a list of texts"),
        (own_row(documents=[]), "documents: is empty"),
        (own_row(documents=...), "documents: is missing"),
        (own_row(documents=["missing.md"]), "'missing.md' is not among the documents"),
        (own_row(answerable="yes"), "answerable: must be true or false"),
        (own_row(id="first"), "id: 'first' occurs twice"),
    ],
)
def test_a_wrong_line_is_told_with_file_line_key_and_mend(tmp_path: Path, row: Any, told: str) -> None:
    folder = write_documents(tmp_path / "documents")
    file = write_jsonl(tmp_path / "set.jsonl", own_row(id="first"), "", row)
    with pytest.raises(EvalSetError) as caught:
        load_set(file, documents=folder)
    assert caught.value.message.startswith(f"{file}:3: ")
    assert told in caught.value.message


def test_a_set_without_documents_or_questions_is_told(tmp_path: Path) -> None:
    file = write_jsonl(tmp_path / "set.jsonl", own_row())
    with pytest.raises(EvalSetError, match="--documents"):
        load_set(file)
    with pytest.raises(EvalSetError, match="holds no documents"):
        load_set(file, documents=tmp_path / "nowhere")
    empty = write_jsonl(tmp_path / "empty.jsonl")
    with pytest.raises(EvalSetError, match="is empty"):
        load_set(empty, documents=write_documents(tmp_path / "documents"))
    with pytest.raises(EvalSetError, match="is not an eval set"):
        load_set(tmp_path / "set.csv")


def test_a_squad_paragraph_is_a_passage(tmp_path: Path) -> None:
    loaded = load_set(write_squad(tmp_path / "set.json", squad(articles=3)))
    assert (len(loaded.passages), len(loaded.questions), loaded.groups) == (6, 12, [0, 1, 2])
    question = loaded.questions[-1]
    assert question.targets == {"2:1": 1}
    assert question.answers == ("Paragraph 1",)


def test_impossible_questions_of_squad_are_unanswerable(tmp_path: Path) -> None:
    data = squad(articles=1, questions=1)
    data["data"][0]["paragraphs"][0]["qas"][0] |= {"is_impossible": True, "answers": []}
    loaded = load_set(write_squad(tmp_path / "set.json", data))
    assert [question.answerable for question in loaded.questions] == [False, True]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda data: data.pop("data"), "data: must be a list of articles"),
        (lambda data: data["data"][1].pop("paragraphs"), "data[1]: paragraphs: is missing"),
        (lambda data: data["data"][0]["paragraphs"][1].pop("context"), "data[0].paragraphs[1]: context:"),
        (lambda data: data["data"][0]["paragraphs"][1].pop("qas"), "data[0].paragraphs[1]: qas:"),
        (lambda data: data["data"][0]["paragraphs"][0]["qas"][1].pop("answers"), "qas[1]: answers: is missing"),
        (lambda data: data["data"][0]["paragraphs"][0]["qas"][1].update(answers=[]), "set is_impossible to true"),
        (lambda data: data["data"][0]["paragraphs"][0]["qas"][1].pop("question"), "qas[1]: question:"),
    ],
)
def test_a_wrong_squad_file_is_told_with_its_place(tmp_path: Path, change: Any, told: str) -> None:
    data = squad()
    change(data)
    file = write_squad(tmp_path / "set.json", data)
    with pytest.raises(EvalSetError) as caught:
        load_set(file)
    assert str(file) in caught.value.message
    assert told in caught.value.message


def test_leaving_out_articles_makes_their_questions_unanswerable(tmp_path: Path) -> None:
    loaded = load_set(write_squad(tmp_path / "set.json", squad(articles=4)))
    half = leave_out(loaded, every=2, offset=0)
    assert {passage.group for passage in half.passages} == {1, 3}
    assert {question.group for question in half.questions if question.answerable} == {1, 3}
    assert len(half.questions) == len(loaded.questions)
    seen = [leave_out(loaded, every=4, offset=offset) for offset in range(4)]
    times_unanswerable = [sum(not part.questions[n].answerable for part in seen) for n in range(len(loaded.questions))]
    assert set(times_unanswerable) == {1}
    with pytest.raises(EvalSetError, match="has 4 articles"):
        leave_out(loaded, every=5)


def test_questions_whose_passages_are_left_out_are_asked_over_the_others(tmp_path: Path) -> None:
    loaded = load_set(write_squad(tmp_path / "set.json", squad(articles=4)))
    halves = [leave_passages_out(loaded, half=half) for half in (0, 1)]
    asked = [question.key for part in halves for question in part.questions]
    assert sorted(asked) == sorted(question.key for question in loaded.questions if question.answerable)
    target = {question.key: question.targets.keys() for question in loaded.questions}
    for part in halves:
        left = {passage.key for passage in part.passages}
        assert left
        assert all(target[question.key].isdisjoint(left) and not question.answerable for question in part.questions)
        assert all(question.answers for question in part.questions), "they tell whether another passage answers"


def test_leaving_out_needs_articles(tmp_path: Path) -> None:
    with pytest.raises(EvalSetError, match="SQuAD format"):
        leave_out(load_set(write_beir(tmp_path / "beir")), every=2)


def test_a_beir_folder_gives_graded_passages_and_judged_queries(tmp_path: Path) -> None:
    loaded = load_set(write_beir(tmp_path / "beir"))
    assert [passage.text for passage in loaded.passages] == ["Tea\n\ngreen", "red"]
    assert [(question.key, dict(question.targets)) for question in loaded.questions] == [("q1", {"d1": 2})]


@pytest.mark.parametrize(
    ("line", "told"),
    [("q1\td9\t1", "'d9' is not in corpus.jsonl"), ("q1\td1", "tab between"), ("q1\td1\thigh", "a whole number")],
)
def test_wrong_judgements_are_told_with_their_line(tmp_path: Path, line: str, told: str) -> None:
    folder = write_beir(tmp_path / "beir")
    (folder / "qrels" / "test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{line}\n")
    with pytest.raises(EvalSetError) as caught:
        load_set(folder)
    assert "test.tsv:2: " in caught.value.message
    assert told in caught.value.message


def test_a_beir_folder_without_its_files_says_which(tmp_path: Path) -> None:
    (tmp_path / "beir").mkdir()
    with pytest.raises(EvalSetError, match=r"corpus\.jsonl: is missing"):
        load_set(tmp_path / "beir")


def test_another_content_is_another_digest(tmp_path: Path) -> None:
    first = load_set(write_squad(tmp_path / "set.json", squad(articles=2)))
    again = load_set(tmp_path / "set.json")
    other = load_set(write_squad(tmp_path / "set.json", squad(articles=3)))
    assert first.digest == again.digest != other.digest


def test_the_questions_of_a_translation_are_asked_over_the_passages_of_a_set(tmp_path: Path) -> None:
    english, spanish = squad(articles=2), squad(articles=2)
    for code, data in (("en", english), ("es", spanish)):
        for question in squad_questions(data):
            question["id"] = f"{code}-{question['id']}"
            question["question"] = f"{code}: {question['question']}"
    del spanish["data"][1]["paragraphs"][1]
    read, asked = (load_set(write_squad(tmp_path / f"{name}.json", data)) for name, data in
                   (("english", english), ("spanish", spanish)))  # fmt: skip
    translated = translate_questions(read, asked)
    assert translated.name == "spanish on english"
    assert translated.passages == read.passages
    assert len(translated.questions) == len(asked.questions) < len(read.questions)
    for question in translated.questions:
        assert question.text.startswith("es: ") and question.key.startswith("en-")
        assert set(question.targets) <= {passage.key for passage in read.passages}


def test_sets_that_are_no_translations_are_told(tmp_path: Path) -> None:
    one, other = squad(articles=1), squad(articles=1)
    for question in squad_questions(other):
        question["id"] = f"x{question['id']}"
    sets = [load_set(write_squad(tmp_path / f"{name}.json", data)) for name, data in (("one", one), ("other", other))]
    with pytest.raises(EvalSetError, match="different ids"):
        translate_questions(*sets)
    with pytest.raises(EvalSetError, match="None of these sets is a translation"):
        translate_sets(sets)


def squad_questions(data: dict[str, Any]) -> list[dict[str, Any]]:
    return [asked for article in data["data"] for part in article["paragraphs"] for asked in part["qas"]]
