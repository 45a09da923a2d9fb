"""The chat model against the double of Ollama: what goes over the wire, and what comes back."""

from __future__ import annotations

import asyncio
import contextlib
import json

import pytest
from structlog.testing import capture_logs

from rag_service.errors import ModelBusyError, ModelError, ModelOutputError
from rag_service.models.llm.model import ChatDelta, ChatModel
from tests.doubles.ollama import (
    CHAT,
    Break,
    Done,
    End,
    ErrorLine,
    Hang,
    OllamaDouble,
    Raw,
    Reset,
    Say,
    Think,
    Wait,
    chat,
    failure,
    refused,
)
from tests.integration.models.conftest import MESSAGES, MakeChat, until


async def collect(model: ChatModel, **options: object) -> tuple[str, ChatDelta]:
    """The text and the last delta of one answer."""
    deltas = [delta async for delta in model.stream(MESSAGES, **options)]  # type: ignore[arg-type]
    assert not deltas[-1].text
    return "".join(delta.text for delta in deltas), deltas[-1]


async def test_the_answer_arrives_whole_with_the_models_own_counts(make_chat: MakeChat, ollama: OllamaDouble) -> None:
    ollama.script(CHAT, chat(Say("It ends "), Say("in May [C1]."), Done(120, 9)))
    text, last = await collect(make_chat())
    assert text == "It ends in May [C1]."
    assert (last.prompt_tokens, last.completion_tokens, last.finish_reason) == (120, 9, "stop")


async def test_the_request_says_all_that_ollama_would_otherwise_guess(
    make_chat: MakeChat, ollama: OllamaDouble
) -> None:
    await collect(make_chat(context_window=6144, max_tokens=333))
    (body,) = ollama.bodies(CHAT)
    assert body["stream"] is True
    assert body["think"] is False
    assert body["options"] == {"temperature": 0.1, "num_ctx": 6144, "num_predict": 333}
    assert [message["role"] for message in body["messages"]] == ["system", "user"]


async def test_the_blocking_show_endpoint_is_never_asked(make_chat: MakeChat, ollama: OllamaDouble) -> None:
    model = make_chat()
    assert (model.provider, model.model_name, model.context_window) == ("ollama", "llama3.2", 8192)
    await collect(model)
    assert {request.path for request in ollama.requests} == {CHAT}


async def test_max_tokens_of_one_call_leaves_the_next_call_alone(make_chat: MakeChat, ollama: OllamaDouble) -> None:
    model = make_chat()
    await collect(model, max_tokens=50)
    await collect(model)
    assert [body["options"]["num_predict"] for body in ollama.bodies(CHAT)] == [50, 700]


async def test_thinking_is_not_part_of_the_answer(make_chat: MakeChat, ollama: OllamaDouble) -> None:
    ollama.script(CHAT, chat(Think("Hm."), Think(" Let me see."), Say("May.")))
    deltas = [delta async for delta in make_chat(thinking=True).stream(MESSAGES)]
    assert [delta.text for delta in deltas] == ["May.", ""]


async def test_a_thinking_model_may_think_longer_than_the_first_token_limit(
    make_chat: MakeChat, ollama: OllamaDouble
) -> None:
    ollama.script(CHAT, chat(*[step for _ in range(8) for step in (Wait(0.15), Think("."))], Say("May.")))
    text, _ = await collect(make_chat(first_token_timeout=1.0, token_timeout=1.0))
    assert text == "May."


async def test_a_level_of_thinking_reaches_the_server(make_chat: MakeChat, ollama: OllamaDouble) -> None:
    await collect(make_chat(thinking="low"))
    assert ollama.bodies(CHAT)[0]["think"] == "low"


async def test_a_model_that_cannot_think_answers_without_being_told_to(
    make_chat: MakeChat, ollama: OllamaDouble
) -> None:
    ollama.script(CHAT, failure(400, '"llama3.2" does not support thinking'))
    model = make_chat(thinking=True)
    assert (await collect(model))[0] == ollama.answer
    await collect(model)
    assert [body.get("think") for body in ollama.bodies(CHAT)] == [True, None, None]


# -- retries


@pytest.mark.parametrize("status", [429, 503])
async def test_a_busy_server_is_asked_three_times_then_the_caller_is_told_when(
    make_chat: MakeChat, ollama: OllamaDouble, status: int
) -> None:
    ollama.script(CHAT, failure(status), failure(status), failure(status, retry_after="17"))
    with pytest.raises(ModelBusyError) as caught:
        await collect(make_chat())
    assert caught.value.retry_after == 17
    assert len(ollama.requests) == 3
    assert caught.value.__cause__ is not None


async def test_an_answer_after_two_failures_is_an_answer(make_chat: MakeChat, ollama: OllamaDouble) -> None:
    ollama.script(CHAT, failure(503), refused(), chat(Say("May.")))
    text, _ = await collect(make_chat())
    assert text == "May."
    assert len(ollama.requests) == 3


async def test_retry_after_is_waited_for(make_chat: MakeChat, ollama: OllamaDouble) -> None:
    ollama.script(CHAT, failure(429, retry_after="1"))
    await collect(make_chat())
    first, second = ollama.requests
    assert second.at - first.at >= 1.0


async def test_a_retry_after_that_is_too_long_is_passed_on_at_once(make_chat: MakeChat, ollama: OllamaDouble) -> None:
    ollama.script(CHAT, failure(429, retry_after="120"))
    with pytest.raises(ModelBusyError) as caught:
        await collect(make_chat())
    assert caught.value.retry_after == 120
    assert len(ollama.requests) == 1


@pytest.mark.parametrize(
    "breaks",
    [[Reset()], [Break()], [ErrorLine("out of memory")], [Raw(b"<html>\n")], [Raw(b'{"mess'), End()], [End()]],
    ids=["reset", "break", "error line", "garbage", "cut line", "no final object"],
)
async def test_a_stream_that_breaks_after_the_first_token_is_never_tried_again(
    make_chat: MakeChat, ollama: OllamaDouble, breaks: list[object]
) -> None:
    ollama.script(CHAT, chat(Say("It ends"), *breaks))  # type: ignore[arg-type]
    deltas = make_chat().stream(MESSAGES)
    assert (await anext(deltas)).text == "It ends"
    with pytest.raises(ModelError) as caught:
        await anext(deltas)
    assert caught.value.message == "The language model stopped before the end of its answer."
    assert len(ollama.requests) == 1
    await until(lambda: ollama.open_streams == 0)


async def test_a_stream_without_a_single_line_is_not_an_answer(make_chat: MakeChat, ollama: OllamaDouble) -> None:
    ollama.script(CHAT, chat(End()))
    with pytest.raises(ModelError, match="stopped before the end"):
        await collect(make_chat())


async def test_a_missing_model_is_an_error_at_once_that_shows_no_internals(
    make_chat: MakeChat, ollama: OllamaDouble
) -> None:
    ollama.missing.add("llama3.2")
    with pytest.raises(ModelError) as caught:
        await collect(make_chat())
    assert caught.value.code == "llm_unavailable"
    assert "With Ollama, run `rag-service models pull`" in caught.value.message
    assert "llama3.2" in str(caught.value.__cause__)
    assert len(ollama.requests) == 1


async def test_a_server_that_is_not_there_cannot_be_reached(make_chat: MakeChat) -> None:
    with pytest.raises(ModelError) as caught:
        await collect(make_chat(ollama_url="http://127.0.0.1:9"))
    assert caught.value.message == "The language model cannot be reached."
    assert caught.value.retry_after is not None


async def test_a_refused_request_is_not_tried_again(make_chat: MakeChat, ollama: OllamaDouble) -> None:
    ollama.script(CHAT, failure(400, "invalid format"))
    with pytest.raises(ModelError, match=r"refused the request\.$"):
        await collect(make_chat())
    assert len(ollama.requests) == 1


# -- limits


@pytest.mark.parametrize(
    ("steps", "limits"),
    [
        ([Hang()], {"first_token_timeout": 0.2}),
        ([Say("It"), Hang()], {"token_timeout": 0.2}),
        ([Say("a"), *[step for _ in range(50) for step in (Wait(0.1), Say("a"))]], {"answer_timeout": 0.5}),
    ],
    ids=["first token", "between tokens", "total"],
)
async def test_a_model_that_is_too_slow_is_left(
    make_chat: MakeChat, ollama: OllamaDouble, steps: list[object], limits: dict[str, float]
) -> None:
    ollama.script(CHAT, chat(*steps))  # type: ignore[arg-type]
    with pytest.raises(ModelError, match="did not answer in time"):
        await collect(make_chat(**limits))
    await until(lambda: ollama.open_streams == 0)
    assert len(ollama.requests) == 1


async def test_only_as_many_requests_as_set_reach_the_server(make_chat: MakeChat, ollama: OllamaDouble) -> None:
    ollama.token_delay = 0.01
    model = make_chat(model_concurrency=2)
    answers = await asyncio.gather(*(collect(model) for _ in range(6)))
    assert ollama.most_open_streams == 2
    assert {text for text, _ in answers} == {ollama.answer}


async def test_a_full_queue_is_told_at_once_and_a_left_slot_is_free(make_chat: MakeChat, ollama: OllamaDouble) -> None:
    ollama.script(CHAT, chat(Say("It"), Hang()))
    model = make_chat(model_concurrency=1, model_queue=0)
    async with contextlib.aclosing(model.stream(MESSAGES)) as deltas:
        await anext(deltas)
        with pytest.raises(ModelBusyError) as caught:
            await collect(model)
        assert caught.value.retry_after is not None
        assert 1 <= caught.value.retry_after <= 60
    text, _ = await collect(model)
    assert text == ollama.answer


async def test_waiting_for_a_slot_has_an_end(make_chat: MakeChat, ollama: OllamaDouble) -> None:
    ollama.script(CHAT, chat(Say("It"), Hang()))
    model = make_chat(model_concurrency=1, first_token_timeout=1.0)
    async with contextlib.aclosing(model.stream(MESSAGES)) as deltas:
        await anext(deltas)
        with pytest.raises(ModelBusyError):
            await collect(model)


# -- leaving


async def test_leaving_a_stream_closes_the_connection_at_once(make_chat: MakeChat, ollama: OllamaDouble) -> None:
    ollama.script(CHAT, chat(Say("It"), Hang()))
    async with contextlib.aclosing(make_chat().stream(MESSAGES)) as deltas:
        await anext(deltas)
    await until(lambda: ollama.disconnects)  # no limit has passed
    assert len(ollama.disconnects) == 1


@pytest.mark.parametrize("steps", [[Hang()], [Say("It"), Hang()]], ids=["before", "after"])
async def test_a_cancelled_request_closes_the_connection_at_once(
    make_chat: MakeChat, ollama: OllamaDouble, steps: list[object]
) -> None:
    ollama.script(CHAT, chat(*steps))  # type: ignore[arg-type]
    model = make_chat(model_concurrency=1)
    task = asyncio.create_task(collect(model))
    await until(lambda: ollama.open_streams == 1)
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await until(lambda: ollama.disconnects)  # no limit has passed
    assert len(ollama.disconnects) == 1
    text, _ = await collect(model)  # the slot is free again
    assert text == ollama.answer


async def test_a_task_cancelled_again_while_it_cleans_up_still_closes_the_connection(
    make_chat: MakeChat, ollama: OllamaDouble
) -> None:
    """Litestar cancels every await of a `finally`, not only the first."""
    ollama.script(CHAT, chat(Say("It"), Hang()))
    model = make_chat(model_concurrency=1, model_queue=0)
    task = asyncio.create_task(collect(model))
    await until(lambda: ollama.open_streams == 1)
    await asyncio.sleep(0.05)
    for _ in range(5):
        task.cancel()
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await task
    await until(lambda: len(ollama.disconnects) == 1)
    await collect(model)


# -- the prompt that was cut, and structured output


async def test_a_prompt_that_the_model_saw_only_half_of_is_logged(make_chat: MakeChat, ollama: OllamaDouble) -> None:
    ollama.script(CHAT, chat(Say("May."), Done(prompt_eval_count=500)))
    with capture_logs() as logs:
        await collect(make_chat(), expected_prompt_tokens=1000)
    (entry,) = [entry for entry in logs if entry["event"] == "prompt_truncated"]
    assert (entry["log_level"], entry["counted"], entry["expected"]) == ("error", 500, 1000)


@pytest.mark.parametrize("done", [Done(prompt_eval_count=700), Done(counts=False)], ids=["near", "unknown"])
async def test_a_count_that_differs_a_little_or_is_missing_is_no_alarm(
    make_chat: MakeChat, ollama: OllamaDouble, done: Done
) -> None:
    ollama.script(CHAT, chat(Say("May."), done))
    with capture_logs() as logs:
        await collect(make_chat(), expected_prompt_tokens=1000)
    assert [entry["log_level"] for entry in logs] == ["info"]


async def test_a_good_answer_logs_one_info_line_without_its_text(make_chat: MakeChat, ollama: OllamaDouble) -> None:
    with capture_logs() as logs:
        await collect(make_chat())
    (entry,) = logs
    assert (entry["event"], entry["log_level"], entry["outcome"]) == ("model_called", "info", "complete")
    assert "source" not in json.dumps(entry)


async def test_structured_output_is_enforced_by_the_schema(make_chat: MakeChat, ollama: OllamaDouble) -> None:
    schema = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
    ollama.script(CHAT, chat(Say('{"ok"'), Say(": true}")))
    assert await make_chat().complete_json(MESSAGES, schema) == '{"ok": true}'
    (body,) = ollama.bodies(CHAT)
    assert body["format"] == schema


async def test_structured_output_that_comes_back_empty_is_asked_for_once_without_the_switch_of_thinking(
    make_chat: MakeChat, ollama: OllamaDouble
) -> None:
    ollama.script(CHAT, chat(Think("Hm.")), chat(Say("{}")), chat(Think("Hm.")), chat(Think("Hm.")))
    model = make_chat()
    assert await model.complete_json(MESSAGES, {"type": "object"}) == "{}"
    with pytest.raises(ModelError):
        await model.complete_json(MESSAGES, {"type": "object"})
    assert [body.get("think") for body in ollama.bodies(CHAT)] == [False, None, False, None]


async def test_structured_output_cut_by_its_limit_is_an_error(make_chat: MakeChat, ollama: OllamaDouble) -> None:
    ollama.script(CHAT, chat(Say('{"ok"'), Done(done_reason="length")))
    with pytest.raises(ModelOutputError):
        await make_chat().complete_json(MESSAGES, {"type": "object"})
