"""Each half of each eval set keeps its thresholds, with the packaged embedding model and without a chat model."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from evals.quoted_conversations import play
from evals.sets.measure import ask_set, by_half, count
from evals.sets.questions import read_set, set_names
from evals.sets.thresholds import missed
from rag_service import open_service
from rag_service.client.service import Service
from rag_service.store.embedded import EmbeddedServer
from tests.conftest import cloned_database, parsing_here

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("sets")]


@pytest.fixture(scope="module")
def service(postgres: EmbeddedServer) -> Iterator[Service]:
    """Of the module: each set has a corpus of its own."""
    with (
        parsing_here(),
        cloned_database(postgres) as server,
        open_service(database_url=server.service_conninfo, chat_provider="extractive") as opened,
    ):
        yield opened


@pytest.mark.parametrize("name", set_names())
def test_a_set_keeps_its_thresholds(service: Service, name: str) -> None:
    replies = ask_set(service, read_set(name))
    assert [line for half, found in by_half(replies) for line in missed(name, half, count(found))] == []


def test_a_question_about_something_else_is_answered_in_a_conversation_as_by_itself(service: Service) -> None:
    """Without a chat model a short one may be joined to the question before, and is then asked joined."""
    asked = read_set("ordinary_words")
    alone = count(ask_set(service, asked, corpus="asked alone"))
    second = count(ask_set(service, asked, corpus="asked second", second=True))
    assert second.right >= alone.right - 3  # of 47; answering both ways lost 1 at most (decision 072)
    assert second.green_wrong <= alone.green_wrong


def test_conversations_show_the_right_places(service: Service) -> None:
    """Measured when they were written: 18 of 20 turns that need what was said, and all of the 20 others."""
    turns = list(play(service))
    needing, complete = ([turn.is_right for turn in turns if turn.needs is needs] for needs in (True, False))
    assert (len(needing), len(complete)) == (20, 20)
    assert sum(needing) >= 16
    assert sum(complete) >= 18
    assert not [turn.question for turn in turns if turn.is_false]
