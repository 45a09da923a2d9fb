"""Questions that need several passages: with parts, or about something that they do not name. Thresholds of two sets.

The figures that these thresholds hold, and those without what is measured here, are in decision 053.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from evals.parts import ask_parts, read_questions
from evals.steps import ScriptedModel, ask_steps, read_steps
from rag_service.components import Components, Plugins, open_components
from rag_service.domain import LOCAL_ADMIN, ReplyKind
from rag_service.retrieval.question import Question
from rag_service.settings import Settings
from rag_service.store.documents.documents import DocumentInput
from rag_service.store.embedded import EmbeddedServer
from tests.conftest import parsing_here

pytestmark = pytest.mark.slow


@pytest.fixture
async def service(database_server: EmbeddedServer) -> AsyncIterator[Components]:
    """With the packaged embedding model."""
    with parsing_here():
        async with open_components(Settings(database_url=database_server.service_conninfo)) as opened:
            yield opened


async def test_each_part_of_a_question_is_quoted_or_named(service: Components) -> None:
    found = await ask_parts(service, read_questions("blind"))
    several = [reply for reply in found if reply.parts > 1]
    assert len(several) == 36
    assert sum(reply.is_whole for reply in several) >= 18
    assert sum(reply.told for reply in several) >= 54  # of 79
    assert sum(reply.is_false for reply in several) <= 4
    single = [reply for reply in found if reply.parts == 1]
    assert all(reply.is_whole for reply in single)


async def test_a_doubtful_reading_of_a_table_takes_no_question_over_that_has_parts(service: Components) -> None:
    values = b"Instrument;Owner;Value in EUR;Lent to\nTuba;Youth Orchestra;4300;Marta\nViola;Youth Orchestra;2100;Ivo\n"
    values += b"Oboe;Town Band;1900;\nTimpani;Youth Orchestra;5200;\n"
    rules = b"# Lending rules\n\nWhoever borrows an instrument leaves a deposit of 10 % of its value.\n\n"
    rules += b"The deposit is returned in July.\n"
    for name, data in (("instruments.csv", values), ("lending.md", rules)):
        await service.ingest(DocumentInput(data=data, file_name=name), LOCAL_ADMIN)
    asked = "What is the value of the viola, and when is the deposit returned?"
    answer = await service.engine.answer(Question(asked, identity=LOCAL_ADMIN))
    assert answer.kind is ReplyKind.PLACES
    assert "2100" in answer.text and "July" in answer.text


async def test_a_second_search_finds_what_the_first_passage_leads_to(service: Components) -> None:
    found = await ask_steps(service, read_steps("blind"), None)
    assert sum(reply.held == reply.needed for reply in found) >= 25  # of 40; 19 without it
    assert sum(reply.is_green and not reply.is_right for reply in found) <= 10
    single = await ask_steps(service, read_steps("single"), None)
    assert sum(reply.is_right for reply in single) >= 38  # of 40
    assert not any(reply.is_green and not reply.is_right for reply in single)


async def test_the_right_sub_questions_of_a_model_lead_to_all_passages(database_server: EmbeddedServer) -> None:
    model = ScriptedModel()
    settings = Settings(database_url=database_server.service_conninfo, chat_tools="on", judge="none")
    with parsing_here():
        async with open_components(settings, plugins=Plugins(llm=model)) as service:
            found = await ask_steps(service, read_steps("blind"), model)
    assert sum(reply.held == reply.needed for reply in found) >= 38  # of 40
