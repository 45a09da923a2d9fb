"""No mixture of words breaks an answer. What the planner makes of them: tests/unit/tables/test_planning.py."""

from __future__ import annotations

import random

import pytest

from rag_service.language.languages import language_codes, load_language
from rag_service.store.embedded import EmbeddedServer
from tests.integration.tables.conftest import files_of, open_library

WORDS = """
stock price weight model type warehouse tents Lyon Lille Sevilla Alpina 2 3 2025 1.5 50% € kg family trekking
expedition total yes no 2025-02-11 March and in of than the
"""


@pytest.mark.parametrize("count", [30, pytest.param(400, marks=pytest.mark.slow)])
async def test_no_mixture_of_words_breaks_an_answer(postgres: EmbeddedServer, count: int) -> None:
    chance = random.Random(7)  # noqa: S311 - not for secrets
    cues = {
        code: [phrase for phrases in load_language(code).tables.phrases.values() for phrase in phrases]
        for code in language_codes()
    }
    computed = 0
    async with open_library(postgres, files_of("team_sheets", "tents.xlsx")) as library:
        for _ in range(count):
            code = chance.choice(language_codes())
            words = chance.sample(WORDS.split(), chance.randint(1, 3))
            picked = [*chance.sample(cues[code], chance.randint(1, 2)), *words]
            if chance.random() < 0.5:
                chance.shuffle(picked)
            answer = await library.ask(" ".join(picked) + "?")
            computed += any(one.formula for one in (*answer.citations, *answer.places))
            assert all(citation.quote for citation in answer.citations if citation.formula)
    assert computed > count / 20  # else the mixtures would show nothing
