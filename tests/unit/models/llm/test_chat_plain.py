"""The chat model over any LlamaIndex LLM, without a server."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import AsyncGenerator, Sequence
from typing import Any

import pytest
from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    ChatResponseAsyncGen,
    CompletionResponse,
    CompletionResponseGen,
    LLMMetadata,
    MessageRole,
)
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.instrumentation.events import BaseEvent
from llama_index.core.instrumentation.events.llm import LLMChatEndEvent, LLMChatStartEvent
from llama_index.core.llms import LLM, CustomLLM, MockLLM
from llama_index.core.llms.callbacks import llm_chat_callback, llm_completion_callback

from rag_service.errors import ConfigurationError, ContextOverflowError, ModelError, ModelOutputError
from rag_service.models.llm.model import ChatModel, build_chat, collect
from rag_service.settings import Settings

MESSAGES = [ChatMessage(role=MessageRole.USER, content="One two three")]


class FakeLLM(MockLLM):
    """An LLM that yields these deltas; an exception among them is raised."""

    _deltas: list[Any] = PrivateAttr()
    _seen: list[dict[str, Any]] = PrivateAttr(default_factory=list)
    _limits: list[int | None] = PrivateAttr(default_factory=list)

    def __init__(self, *deltas: Any):
        super().__init__()
        self._deltas = list(deltas)

    async def astream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> AsyncGenerator[ChatResponse, None]:
        self._seen.append(kwargs)
        self._limits.append(self.max_tokens)

        async def stream() -> AsyncGenerator[ChatResponse, None]:
            for delta in self._deltas:
                await asyncio.sleep(0)
                if isinstance(delta, Exception):
                    raise delta
                yield ChatResponse(message=ChatMessage(role=MessageRole.ASSISTANT, content=delta), delta=delta)

        return stream()


async def test_any_llm_streams_through_it_and_is_called_once() -> None:
    llm = FakeLLM("May", " 30.")
    chat = build_chat(Settings(), llm=llm)
    deltas = [delta async for delta in chat.stream(MESSAGES)]
    assert [delta.text for delta in deltas] == ["May", " 30.", ""]
    assert deltas[-1].prompt_tokens is None
    assert llm._seen == [{}]
    assert chat.provider == "FakeLLM"


async def test_llama_indexs_own_mock_works_as_it_is() -> None:
    chat = build_chat(Settings(), llm=MockLLM(max_tokens=3))
    assert "".join([delta.text async for delta in chat.stream(MESSAGES)]) == "text text text"


async def test_max_tokens_of_one_call_is_set_in_the_field_that_llama_indexs_classes_have_for_it() -> None:
    llm = FakeLLM("May")
    chat = build_chat(Settings(), llm=llm)
    assert [delta async for delta in chat.stream(MESSAGES, max_tokens=20)]
    assert [delta async for delta in chat.stream(MESSAGES)]
    assert llm._limits == [20, None]


async def test_a_model_that_ignores_its_limit_is_left() -> None:
    pages = [" ".join(f"word{page * 100 + number}" for number in range(100)) for page in range(1000)]
    chat = build_chat(Settings(), llm=FakeLLM(*pages))
    deltas = [delta async for delta in chat.stream(MESSAGES, max_tokens=50)]
    assert len("".join(delta.text for delta in deltas)) == 1000
    assert deltas[-1].finish_reason == "length"


async def test_what_cannot_be_stored_is_replaced_in_what_a_model_says() -> None:
    chat = build_chat(Settings(), llm=FakeLLM("a\0b", "\ud800 c\x1b[2J", "\ud83d\ude00"))
    text = "".join([delta.text async for delta in chat.stream(MESSAGES)])
    assert text == "a\ufffdb\ufffd c\ufffd[2J\N{GRINNING FACE}"


async def test_white_space_is_no_answer() -> None:
    chat = build_chat(Settings(), llm=FakeLLM("\n", " \n"))
    with pytest.raises(ModelError):
        [delta async for delta in chat.stream(MESSAGES)]
    chat = build_chat(Settings(), llm=FakeLLM("\n", " May", " 30."))
    assert "".join([delta.text async for delta in chat.stream(MESSAGES)]) == "May 30."


async def test_an_error_of_the_service_itself_passes_unchanged() -> None:
    chat = build_chat(Settings(), llm=FakeLLM("May", ContextOverflowError("too long")))
    with pytest.raises(ContextOverflowError):
        [delta async for delta in chat.stream(MESSAGES)]


async def test_any_other_error_is_a_model_error_without_internals() -> None:
    chat = build_chat(Settings(), llm=FakeLLM(ValueError("secret detail")))
    with pytest.raises(ModelError) as caught:
        [delta async for delta in chat.stream(MESSAGES)]
    assert "secret" not in caught.value.message
    assert str(caught.value.__cause__).startswith("ValueError: ")  # for the log


async def test_a_model_without_structured_output_says_so() -> None:
    chat = build_chat(Settings())
    assert not chat.structured_output
    with pytest.raises(ModelOutputError):
        await chat.complete_json(MESSAGES, {"type": "object"})


# -- thoughts in the text, and repetitions


def speaking(*deltas: str) -> ChatModel:
    return build_chat(Settings(), llm=FakeLLM(*deltas))


async def test_nothing_but_thought_is_no_answer() -> None:
    for thought in ("<think>Hm.</think>\n", "<think>Hm, hm, hm", "Hm, hm.</think>"):
        with pytest.raises(ModelError, match="stopped before the end"):
            await collect(speaking(thought).stream(MESSAGES))


async def test_an_answer_that_turns_out_to_be_thought_is_taken_back_and_the_next_is_held() -> None:
    chat = speaking("Hm, ", "May?", "</think>", "\n\nMay", " 30.")
    first = [(delta.text, delta.restart) async for delta in chat.stream(MESSAGES)]
    assert first == [("Hm, ", False), ("May?", False), ("May", True), (" 30.", False), ("", False)]
    second = [delta.text async for delta in chat.stream(MESSAGES)]
    assert second == ["May", " 30.", ""]


async def test_a_reader_who_cannot_take_text_back_gets_none_before_the_model_is_known() -> None:
    thinking, plain = speaking("Hm.", "</think>", "\nMay", " 30."), speaking("May", " 30.")
    assert [delta.text async for delta in thinking.stream(MESSAGES, retractable=False)] == ["May", " 30.", ""]
    assert [delta.text async for delta in plain.stream(MESSAGES, retractable=False)] == ["May 30.", ""]
    assert [delta.text async for delta in plain.stream(MESSAGES, retractable=False)] == ["May", " 30.", ""]


async def test_structured_output_may_follow_thoughts() -> None:
    for thought in ("<think>Hm.</think>", "Hm.</think>\n", ""):
        assert await speaking(thought, '{"said": "</think>', ' ends it."}').complete_json(MESSAGES, {}) == (
            '{"said": "</think> ends it."}'
        )


async def test_a_model_that_repeats_itself_is_left_and_its_good_part_kept() -> None:
    chat = speaking("It is 5 [C1]. ", *["The fee is 35 euros [C2]. "] * 1000)
    deltas = [delta async for delta in chat.stream(MESSAGES)]
    assert len(deltas) == 6
    text, last = await collect(chat.stream(MESSAGES))
    assert (text, last.finish_reason) == ("It is 5 [C1]. The fee is 35 euros [C2].", "length")
    with pytest.raises(ModelOutputError):
        await chat.complete_json(MESSAGES, {})


# -- objects and classes of the user's own


ANSWER = "The contract ends in May."


class Scripted(CustomLLM):
    """Streams `pieces` word by word from its synchronous method, the only one that it has."""

    pieces: list[str] = ANSWER.split(" ")
    with_deltas: bool = True
    can_stream: bool = True
    pause: float = 0.0  # seconds before each piece, blocking
    fails_after: int | None = None

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name="scripted", context_window=4096)

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        return CompletionResponse(text=" ".join(self.pieces))

    @llm_completion_callback()
    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponseGen:
        if not self.can_stream:
            raise NotImplementedError

        def stream() -> CompletionResponseGen:
            text = ""
            for number, piece in enumerate(self.pieces):
                if self.fails_after == number:
                    raise RuntimeError(f"secret of {prompt}")
                time.sleep(self.pause)
                delta = piece if not text or not piece else f" {piece}"
                text += delta
                yield CompletionResponse(text=text, delta=delta if self.with_deltas else None)

        return stream()


def limits(**overrides: Any) -> Settings:
    return Settings(**({"first_token_timeout": 0.3, "token_timeout": 0.3, "answer_timeout": 2.0} | overrides))


async def ask(llm: LLM, settings: Settings | None = None, **options: Any) -> list[str]:
    chat = build_chat(settings or Settings(), llm=llm)
    return [delta.text async for delta in chat.stream(MESSAGES, **options)]


@pytest.mark.parametrize("options", [{}, {"with_deltas": False}, {"can_stream": False}], ids=str)
async def test_a_custom_llm_answers_whether_or_not_it_gives_deltas_or_streams(options: dict[str, Any]) -> None:
    deltas = await ask(Scripted(**options))
    assert "".join(deltas) == ANSWER
    assert len(deltas) == (2 if options.get("can_stream") is False else 6)


async def test_a_custom_llm_is_found_by_its_class_path_and_its_options() -> None:
    settings = Settings(chat_provider=f"{__name__}:Scripted", chat_options='{"pieces": ["Yes."]}')
    chat = build_chat(settings)
    assert [delta.text async for delta in chat.stream(MESSAGES)] == ["Yes.", ""]
    assert (chat.provider, chat.model_name, chat.context_window) == (f"{__name__}:Scripted", "scripted", 4096)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"chat_provider": f"{__name__}:FakeLLMs"}, "Did you mean FakeLLM?"),
        ({"chat_provider": "llama_index.llms.nobody:Nobody"}, "pip install llama-index-llms-nobody"),
        ({"chat_provider": f"{__name__}:Scripted", "chat_options": "[1]"}, "RAG_CHAT_OPTIONS: expected a JSON object"),
        ({"chat_provider": f"{__name__}:Scripted", "chat_options": '{"pauze": 1}'}, "Did you mean pause?"),
        (
            {"chat_provider": "ollama", "chat_options": '{"context_window": "big"}'},
            "RAG_CHAT_OPTIONS: .*context_window",
        ),
    ],
)
def test_a_wrong_provider_is_an_error_at_start(settings: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        build_chat(Settings(**settings))


async def test_a_blocking_llm_does_not_block_the_event_loop() -> None:
    released = threading.Event()

    class Waiting(Scripted):
        @llm_completion_callback()
        def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponseGen:
            def stream() -> CompletionResponseGen:
                assert released.wait(20), "the event loop has no turn"
                yield CompletionResponse(text=ANSWER, delta=ANSWER)

            return stream()

    asyncio.get_running_loop().call_later(0.05, released.set)
    assert await ask(Waiting()) == [ANSWER, ""]


async def test_a_blocking_llm_that_hangs_is_left_in_time() -> None:
    with pytest.raises(ModelError, match="in time"):
        await ask(Scripted(pause=1.0), limits())


async def test_a_custom_llm_that_fails_midway_is_a_model_error_after_what_it_said() -> None:
    chat = build_chat(Settings(), llm=Scripted(fails_after=2))
    seen: list[str] = []
    with pytest.raises(ModelError, match="stopped before the end") as caught:
        async for delta in chat.stream(MESSAGES):
            seen += [delta.text]
    assert "".join(seen) == "The contract"
    assert "secret" in str(caught.value.__cause__)
    assert "secret" not in caught.value.message


async def test_a_model_that_yields_nothing_is_an_error() -> None:
    with pytest.raises(ModelError, match="stopped before the end"):
        await ask(Scripted(pieces=[]))


async def test_empty_deltas_are_not_passed_on() -> None:
    assert await ask(Scripted(pieces=["", "May.", "", ""])) == ["May.", ""]


async def test_a_reader_who_leaves_ends_a_stream_that_wraps_others() -> None:
    """LlamaIndex's wrapper does not close the generator that it wraps; the connection would stay open."""
    closed = asyncio.Event()

    class Connected(Scripted):
        @llm_chat_callback()
        async def astream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponseAsyncGen:
            async def stream() -> AsyncGenerator[ChatResponse]:
                try:
                    while True:
                        yield ChatResponse(message=ChatMessage(content="x"), delta="x")
                        await asyncio.sleep(0.001)
                finally:
                    closed.set()

            return stream()

    chat = build_chat(Settings(), llm=Connected())
    async with contextlib.aclosing(chat.stream(MESSAGES)) as deltas:
        await anext(deltas)
        await asyncio.sleep(0.05)  # the reading task waits for the reader, not for the model
    assert closed.is_set()


async def test_json_is_asked_for_in_words_where_the_class_knows_no_schema() -> None:
    chat = build_chat(Settings(), llm=Scripted(pieces=["```json\n{}\n```"]))
    assert chat.structured_output
    assert await chat.complete_json(MESSAGES, {"type": "object"}) == "{}"


async def test_listeners_of_llama_index_see_the_call() -> None:
    seen: list[BaseEvent] = []

    class Listener(BaseEventHandler):
        def handle(self, event: BaseEvent, **kwargs: Any) -> None:
            seen.append(event)

    listener = Listener()
    root = get_dispatcher()
    root.add_event_handler(listener)
    try:
        await ask(Scripted())
    finally:
        root.event_handlers.remove(listener)
    [started] = [event for event in seen if isinstance(event, LLMChatStartEvent)]
    [ended] = [event for event in seen if isinstance(event, LLMChatEndEvent)]
    assert started.messages[-1].content == "One two three"
    assert ended.response is not None
    assert ended.response.message.content == ANSWER
