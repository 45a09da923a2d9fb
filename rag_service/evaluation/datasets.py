"""Evaluation sets from disk: our own JSONL, SQuAD-format JSON, BEIR folders.

A set is read and checked completely before anything is embedded, so that every mistake is reported at once.
"""

from __future__ import annotations

import csv
import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rag_service.errors import EvalSetError
from rag_service.evaluation.eval_set import EvalSet, Passage, Question, SetKind

OWN_INDICES = {"procedures_es": "procedures_es", "retirement": "retirement", "samples": "general"}
_STORED_TOGETHER = 100  # entries of a BEIR corpus that share a document in the store
TITLE_AND_TEXT = "title and text"  # format of SQuAD passages; earlier runs have the text alone
_TARGET_KEYS = ("documents", "procedures", "articles")  # keys by which an own question names its documents


def load_set(path: Path, *, documents: Path | None = None) -> EvalSet:
    """Read an eval set: a `.jsonl` file over a folder of `documents`, a SQuAD `.json` file, or a BEIR folder.

    Raises EvalSetError if the path is none of these, or a line is wrong.
    """
    if path.is_dir():
        return _load_beir(path)
    if path.suffix == ".jsonl":
        if documents is None:
            raise EvalSetError(f"{path}: name the folder its questions are about with --documents.")
        return _load_own(path, documents)
    if path.suffix == ".json":
        return _load_squad(path)
    raise EvalSetError(f"{path}: is not an eval set; name a .jsonl file, a SQuAD .json file or a BEIR folder.")


# -- our own JSONL


def _load_own(path: Path, folder: Path) -> EvalSet:
    files = tuple(sorted(file for file in folder.rglob("*") if file.is_file())) if folder.is_dir() else ()
    if not files:
        raise EvalSetError(f"{folder}: holds no documents for {path.name}; name another folder with --documents.")
    known = _document_keys(files)
    questions: dict[str, Question] = {}
    for line, row in _read_jsonl(path):
        question = _own_question(row, known, number=len(questions), place=f"{path}:{line}")
        if question.key in questions:
            raise EvalSetError(f"{path}:{line}: id: {question.key!r} occurs twice; ids must differ.")
        questions[question.key] = question
    return EvalSet(
        name=path.stem,
        path=path,
        kind=SetKind.OWN,
        digest=_digest([path, *files]),
        questions=tuple(questions.values()),
        documents=files,
    )


def _document_keys(files: Sequence[Path]) -> dict[str, str]:
    """File name, stem or article id (front matter) of each document → its file name."""
    keys: dict[str, str] = {}
    for file in files:
        keys[file.name] = keys[file.stem] = file.name
        if file.suffix == ".md":
            head = "\n".join(file.read_text(encoding="utf-8", errors="replace").splitlines()[:40])
            article = re.search(r"(?m)^article_id:(.*)$", head)
            if article is not None:
                keys[article[1].strip()] = file.name
    return keys


def _own_question(row: Mapping[str, Any], known: Mapping[str, str], *, number: int, place: str) -> Question:
    text = _text(row, "question", place)
    answerable = row.get("answerable", True)
    if not isinstance(answerable, bool):
        raise EvalSetError(f"{place}: answerable: must be true or false.")
    target_key = next((key for key in _TARGET_KEYS if key in row), None)
    if target_key is None:
        raise EvalSetError(f"{place}: documents: is missing; name the right files, or [] when there is none.")
    named = _texts(row, target_key, place)
    answers = _texts(row, "answers", place)
    if answerable and not (named and answers):
        key = "answers" if named else target_key
        raise EvalSetError(f"{place}: {key}: is empty; an answerable question needs it, or set answerable to false.")
    for name in named:
        if name not in known:
            raise EvalSetError(f"{place}: {target_key}: {name!r} is not among the documents; correct the name.")
    return Question(
        key=str(row.get("id") or number + 1),
        text=text,
        answerable=answerable,
        category=str(row.get("category") or ""),
        answers=tuple(answers),
        targets={known[name]: 1 for name in named},
        sections=tuple(_texts(row, "sections", place)) if "sections" in row else (),
        group=number,
    )


# -- SQuAD


def _load_squad(path: Path) -> EvalSet:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise EvalSetError(f"{path}: is not a JSON file: {error}.") from error
    articles = data.get("data") if isinstance(data, dict) else None
    if not isinstance(articles, list) or not articles:
        raise EvalSetError(f"{path}: data: must be a list of articles, as in SQuAD.")
    passages: list[Passage] = []
    questions: list[Question] = []
    for group, article in enumerate(articles):
        paragraphs = _list(article, "paragraphs", f"{path}: data[{group}]")
        title = str(article.get("title") or "").replace("_", " ").strip()
        for number, paragraph in enumerate(paragraphs):
            place = f"{path}: data[{group}].paragraphs[{number}]"
            key = f"{group}:{number}"
            # Passages of real documents carry their document's title.
            text = f"{title}\n\n{_text(paragraph, 'context', place)}".strip()
            passages.append(Passage(key=key, text=text, group=group))
            for position, asked in enumerate(_list(paragraph, "qas", place)):
                questions.append(_squad_question(asked, key, group, f"{place}.qas[{position}]"))
    return EvalSet(
        name=path.stem,
        path=path,
        kind=SetKind.SQUAD,
        digest=_digest([path]),
        questions=tuple(questions),
        passages=tuple(passages),
        passage_format=TITLE_AND_TEXT,
    )


def _squad_question(asked: Any, passage: str, group: int, place: str) -> Question:
    text = _text(asked, "question", place)
    impossible = asked.get("is_impossible", False)
    answers = () if impossible else _list(asked, "answers", place)
    wordings = tuple(dict.fromkeys(_text(answer, "text", f"{place}.answers[{i}]") for i, answer in enumerate(answers)))
    if not impossible and not wordings:
        raise EvalSetError(f"{place}: answers: is empty; give an answer, or set is_impossible to true.")
    return Question(
        key=str(asked.get("id") or place),
        text=text,
        answerable=not impossible,
        answers=wordings,
        targets={} if impossible else {passage: 1},
        group=group,
    )


# -- BEIR


def _load_beir(folder: Path) -> EvalSet:
    files = [folder / "corpus.jsonl", folder / "queries.jsonl", folder / "qrels" / "test.tsv"]
    for file in files:
        if not file.is_file():
            raise EvalSetError(f"{file}: is missing; a BEIR folder holds corpus.jsonl, queries.jsonl, qrels/test.tsv.")
    corpus, queries, qrels = files
    passages: dict[str, Passage] = {}
    for line, row in _read_jsonl(corpus):
        key = _text(row, "_id", f"{corpus}:{line}")
        title = str(row.get("title") or "").strip()
        text = f"{title}\n\n{row.get('text') or ''}".strip()  # BEIR's own baselines read title and text as one
        if text:
            passages[key] = Passage(key=key, text=text, group=len(passages) // _STORED_TOGETHER)
    judged = _read_qrels(qrels, passages)
    questions: list[Question] = []
    for line, row in _read_jsonl(queries):
        key = _text(row, "_id", f"{queries}:{line}")
        if key in judged:
            text = _text(row, "text", f"{queries}:{line}")
            questions.append(Question(key=key, text=text, answerable=True, targets=judged[key], group=len(questions)))
    if not questions:
        raise EvalSetError(f"{qrels}: judges none of the queries in {queries.name}; the ids must agree.")
    return EvalSet(
        name=folder.name,
        path=folder,
        kind=SetKind.BEIR,
        digest=_digest(files),
        questions=tuple(questions),
        passages=tuple(passages.values()),
    )


def _read_qrels(file: Path, passages: Mapping[str, Passage]) -> dict[str, dict[str, int]]:
    judged: dict[str, dict[str, int]] = {}
    with file.open(encoding="utf-8", newline="") as lines:
        for line, row in enumerate(csv.reader(lines, delimiter="\t"), start=1):
            if line == 1 and row[-1:] == ["score"]:
                continue
            if len(row) != 3 or not row[2].lstrip("-").isdigit():
                raise EvalSetError(f"{file}:{line}: must hold query-id, corpus-id and a whole number, tab between.")
            query, passage, grade = row[0], row[1], int(row[2])
            if passage not in passages:
                raise EvalSetError(f"{file}:{line}: corpus-id: {passage!r} is not in corpus.jsonl.")
            if grade > 0:
                judged.setdefault(query, {})[passage] = grade
    return judged


# -- shared


def _read_jsonl(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """(line number from 1, object) of each line that is not blank."""
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise EvalSetError(f"{path}: cannot be read as UTF-8 text.") from error
    empty = True
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        empty = False
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise EvalSetError(f"{path}:{number}: is not a JSON object: {error}.") from error
        if not isinstance(row, dict):
            raise EvalSetError(f"{path}:{number}: must be a JSON object, one a line.")
        yield number, row
    if empty:
        raise EvalSetError(f"{path}: is empty; write one question a line.")


def _text(row: Any, key: str, place: str) -> str:
    value = row.get(key) if isinstance(row, Mapping) else None
    if not isinstance(value, str) or not value.strip():
        raise EvalSetError(f"{place}: {key}: must be a text that is not empty.")
    return value.strip()


def _texts(row: Mapping[str, Any], key: str, place: str) -> list[str]:
    value = row.get(key)
    if not isinstance(value, list) or not all(isinstance(item, str) and item.strip() for item in value):
        raise EvalSetError(f"{place}: {key}: must be a list of texts.")
    return value


def _list(row: Any, key: str, place: str) -> list[Any]:
    value = row.get(key) if isinstance(row, Mapping) else None
    if not isinstance(value, list):
        raise EvalSetError(f"{place}: {key}: is missing; it must be a list.")
    return value


def _digest(files: Sequence[Path]) -> str:
    total = hashlib.sha256()
    for file in files:
        total.update(f"{file.name}\0".encode())
        total.update(hashlib.sha256(file.read_bytes()).digest())
    return total.hexdigest()
