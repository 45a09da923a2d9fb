"""What is not read on for want of a word that may ask for an operation has no answer without a cell."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from evals.sets.questions import read_set, set_names
from rag_service.language.languages import language_codes
from rag_service.tables.asking.answers import may_ask_operation
from rag_service.tables.asking.planning.question import read_question
from rag_service.tables.asking.planning.resolving import make_plans
from rag_service.tables.asking.planning.several_columns import read_several_columns
from rag_service.tables.model import Kind, StoredTable
from tests.unit.tables.test_planning import FILES, stored

# Every fourth question of the eval sets, over files with tables and without.
QUESTIONS = [question.text for name in set_names() for question in read_set(name).questions][::4]


@cache
def tables() -> list[StoredTable]:
    """Tables without a column of yes and no, which is asked for by its name."""
    plain = [tuple(one for one in stored(name).columns if one.kind is not Kind.BOOLEAN) for name in FILES]
    return [replace(stored(name), columns=columns) for name, columns in zip(FILES, plain, strict=True)]


@pytest.mark.parametrize("language", language_codes())
def test_what_asks_for_an_operation_has_a_word_that_may(language: str) -> None:
    missed = [
        text
        for text in QUESTIONS
        if (question := read_question(text, language)) is not None
        and question.asks
        and not may_ask_operation(text, language)
    ]
    assert missed == []


@pytest.mark.parametrize("language", language_codes())
def test_without_such_a_word_nothing_is_planned_but_what_a_cell_names(language: str) -> None:
    held = [text for text in QUESTIONS[::3] if not may_ask_operation(text, language)]
    assert len(held) > 50
    for text in held:
        question = read_question(text, language)
        if question is not None:
            assert make_plans(question, tables(), {}, best=tables()[0].document_id) == [], text
            assert not any(list(read_several_columns(question, table, {})) for table in map(stored, FILES)), text


@pytest.mark.parametrize(
    ("language", "asking", "plain"),
    [
        ("en", "Who joined first?", "Where is the user guide?"),
        ("es", "¿Quién no ha pagado?", "¿Dónde está la guía?"),
        ("fr", "Quelle tente est la plus chère ?", "Où se trouve le guide ?"),
        ("pt", "Quem vendeu mais em março?", "Onde fica o guia?"),
    ],
)
def test_a_word_may_ask_for_an_operation(language: str, asking: str, plain: str) -> None:
    assert may_ask_operation(asking, language)
    assert not may_ask_operation(plain, language)
