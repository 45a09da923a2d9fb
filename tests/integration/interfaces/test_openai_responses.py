"""The responses API as the official client sees it, over a real socket."""

from __future__ import annotations

from typing import Any

import openai
import pytest

from rag_service.domain import Turn
from rag_service.errors import ModelError
from tests.integration.interfaces.openai_service import (
    SOURCES,
    Serve,
    Served,
    check_citations,
    serve,
    shared,
)
from tests.unit.api.samples import ANSWER, DOCUMENT, EVENTS, QUESTION, Script

__all__ = ["serve", "shared"]


def test_a_response_has_text_annotations_and_citations(shared: Served) -> None:
    response: Any = shared.client.responses.create(model="rag-service", input=QUESTION, temperature=0.3)
    assert (response.status, response.output_text) == ("completed", ANSWER.text + SOURCES)
    (annotation,) = response.output[0].content[0].annotations
    assert (annotation.type, annotation.file_id, annotation.filename) == (
        "file_citation",
        str(DOCUMENT.id),
        "Production",
    )
    assert (annotation.index, response.usage.total_tokens) == (27, 222)
    check_citations(response.citations)
    assert response.rag["ignored"] == ["temperature"]


def test_a_streamed_response_ends_with_the_whole_one(shared: Served) -> None:
    with shared.client.responses.stream(model="rag-service", input=QUESTION) as stream:
        events: list[Any] = list(stream)
        final: Any = stream.get_final_response()
    assert [event.type for event in events][:2] == ["response.created", "response.in_progress"]
    assert "".join(event.delta for event in events if event.type == "response.output_text.delta").split() == (
        (ANSWER.text + SOURCES).split()
    )
    assert (events[-1].type, final.output_text) == ("response.completed", ANSWER.text + SOURCES)
    assert [event.sequence_number for event in events] == sorted(event.sequence_number for event in events)


def test_a_response_knows_conversation_and_instructions(serve: Serve) -> None:
    served = serve()
    said: list[Any] = [
        {"role": "user", "content": [{"type": "input_text", "text": QUESTION}]},
        {"role": "assistant", "content": [{"type": "output_text", "text": ANSWER.text}]},
        {"role": "user", "content": "¿Y en Lyon?"},
    ]
    served.client.responses.create(model="rag-service", instructions="Be brief.", input=said)
    (query,) = served.script.queries
    assert (query.text, query.instructions) == ("¿Y en Lyon?", "Be brief.")
    assert query.turns == (Turn(role="user", content=QUESTION), Turn(role="assistant", content=ANSWER.text))


@pytest.mark.parametrize(
    ("param", "fields"),
    [
        ("background", {"background": True}),
        ("conversation", {"conversation": "conv_1"}),
        ("tool_choice", {"tool_choice": "required"}),
    ],
)
def test_what_would_change_the_form_of_a_response_is_refused_by_name(
    shared: Served, param: str, fields: dict[str, Any]
) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        shared.client.responses.create(model="rag-service", input=QUESTION, **fields)
    assert caught.value.param == param
    shared.client.responses.create(model="rag-service", input=QUESTION, text={"format": {"type": "text"}})


def test_calls_and_thoughts_of_other_models_are_passed_over(serve: Serve) -> None:
    served = serve()
    said: list[Any] = [
        {"type": "message", "role": "user", "content": QUESTION},
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Hm."}]},
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": "4711"},
        {"role": "assistant", "content": [{"type": "output_text", "text": ANSWER.text}]},
        {"role": "user", "content": "¿Y en Lyon?"},
    ]
    served.client.responses.create(model="rag-service", input=said)
    (query,) = served.script.queries
    assert (query.text, [turn.role for turn in query.turns]) == ("¿Y en Lyon?", ["user", "assistant"])


def test_what_was_said_is_kept_for_the_next_response_unless_the_client_says_no(serve: Serve) -> None:
    served = serve()
    served.client.responses.create(model="rag-service", input=QUESTION)
    (first,) = served.script.queries
    assert first.said == (Turn(role="user", content=QUESTION),)
    served.client.responses.create(model="rag-service", input=QUESTION, store=False)
    assert served.script.queries[-1].said == ()


def test_a_response_that_fails_midway_says_so(serve: Serve) -> None:
    served = serve(Script(events=[*EVENTS[:2], ModelError("secret internals")]))
    events: list[Any] = list(served.client.responses.create(model="rag-service", input=QUESTION, stream=True))
    assert (events[-1].type, events[-1].code) == ("error", "llm_unavailable")
    assert "secret" not in events[-1].message
