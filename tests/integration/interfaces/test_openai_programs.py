"""What chat programs send besides plain questions: images, pasted texts, tasks, the name of the embedding model."""

from __future__ import annotations

from typing import Any

import pytest

from tests.integration.interfaces.openai_service import ASKED, Serve, Served, serve, shared
from tests.unit.api.samples import QUESTION

__all__ = ["serve", "shared"]

IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
SEEN = [{"role": "user", "content": [{"type": "text", "text": "What is this?"}, IMAGE]}]
SEEN += [{"role": "assistant", "content": "A pump."}]


def test_an_image_in_the_history_is_passed_over_with_a_note(serve: Serve) -> None:
    served = serve()
    completion = served.ask(messages=[*SEEN, *ASKED])
    assert completion.rag["ignored"] == ["messages[0].content[1]"]
    (query,) = served.script.queries
    assert [turn.content for turn in query.turns] == ["What is this?", "A pump."]


@pytest.mark.parametrize(
    "message",
    [
        f'<context>\n<source name="a.pdf">What is in a.pdf?</source>\n</context>\n\n{QUESTION}',
        f"{'Hm. ' * 2000}\n{QUESTION}",
    ],
    ids=["pasted", "long"],
)
def test_the_question_of_a_message_is_searched_and_named(serve: Serve, message: str) -> None:
    served = serve()
    completion = served.ask(messages=[{"role": "user", "content": message}])
    (query,) = served.script.queries
    assert query.text.endswith(QUESTION) and len(query.text) <= 4000 and "a.pdf" not in query.text
    assert completion.rag["searchedFor"] == query.text


def test_a_task_is_no_question(serve: Serve) -> None:
    served = serve()
    task = "### Task:\nGenerate a title.\n<chat_history>\nUSER: How long?\n</chat_history>"
    served.ask(messages=[{"role": "user", "content": task}])
    served.ask()
    asked, plain = served.script.queries
    assert (asked.task.prompt, asked.task.otherwise, asked.recorded) == (task, "How long?", False)
    assert (plain.task, plain.recorded) == (None, True)


def test_every_model_that_is_listed_can_be_read(shared: Served) -> None:
    listed: list[Any] = list(shared.client.models.list())
    assert len(listed) == 2  # that of all documents, and the embedding model
    assert [shared.client.models.retrieve(one.id) for one in listed] == listed
