"""Questions, what is found for them, and drafts stay as they were made; a run changes in the engine alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import rag_service
from rag_service.answering.drafts.draft import Draft
from rag_service.retrieval.found import Found
from rag_service.retrieval.query import AnswerRun
from rag_service.retrieval.question import Question

PACKAGE = Path(rag_service.__file__).parent
FROZEN = {field.name for kind in (Question, Found, Draft) for field in fields(kind)}
HOLDERS = {"asked", "draft", "found", "query", "question", "request"}  # names that variables of these kinds have
OF_A_RUN = {field.name for field in fields(AnswerRun)}
# `AnswerRun` passes through LlamaIndex: its steps can return nothing but nodes.
MAY_CHANGE_RUNS = {"answering/engine.py", "retrieval/postprocessors.py", "retrieval/query.py"}


def assigned(source: str) -> Iterator[tuple[str, str]]:
    """(variable, attribute) of each assignment to an attribute."""
    for node in ast.walk(ast.parse(source)):
        targets: list[ast.expr] = []
        if isinstance(node, ast.Assign):
            targets = [one for target in node.targets for one in getattr(target, "elts", [target])]
        elif isinstance(node, ast.AugAssign | ast.AnnAssign):
            targets = [node.target]
        for target in targets:
            if isinstance(target, ast.Attribute):
                yield ast.unparse(target.value).rpartition(".")[2], target.attr


def modules() -> Iterator[tuple[str, str]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        if "_shipped" not in path.parts:
            yield path.relative_to(PACKAGE).as_posix(), path.read_text(encoding="utf-8")


def test_nobody_assigns_to_a_field_of_a_question_of_what_was_found_or_of_a_draft() -> None:
    found = {(name, *one) for name, source in modules() for one in assigned(source)}
    assert [one for one in sorted(found) if one[1] in HOLDERS and one[2] in FROZEN] == []
    ours = [(name, source) for name, source in modules() if name.startswith(("answering/", "retrieval/"))]
    assert [name for name, source in ours if "__setattr__" in source or ").update(vars(" in source] == []


def test_only_the_engine_and_the_steps_that_llamaindex_calls_change_a_run() -> None:
    names = {"run", "part_run", "other"}
    changing = {
        name
        for name, source in modules()
        for variable, attribute in assigned(source)
        if variable in names and attribute in OF_A_RUN
    }
    assert changing <= MAY_CHANGE_RUNS


def test_an_assignment_is_found() -> None:
    assert list(assigned("question.text, run.found = 'a', 1\nself.run.model = 2")) == [
        ("question", "text"),
        ("run", "found"),
        ("run", "model"),
    ]
