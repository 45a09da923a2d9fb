"""Two language models that obey: one what stands outside the prompt's data boundaries, one anything.

They read the prompt as it is sent. An order counts as read when its letters stand in what the model looks
at: brackets, spaces and invisible characters do not keep a model from understanding. The first is easily
fooled about where data ends: any line that looks like a boundary, a turn or a role ends it.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Sequence
from typing import Any, Literal

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
from llama_index.core.llms import CustomLLM

from rag_service.language.words import fold
from tests.acceptance.canaries import FACTS, Canary

Obeys = Literal["outside", "anywhere"]

_BOUNDARY = re.compile(r"^\W*~[0-9a-f]{6,}~")
_TURN = re.compile(
    r"<[|｜]|\[/?INST\]|<</?SYS>>|</?(?:system|passages|user|assistant)>"
    r"|^[\W_]*(?:system|sistema|syst[eè]me|assistant|asistente|user|usuario|utilisateur|instruc\w+|###\s*\w+)\s*[:：]"
    r"|^#+\s*(?:system|sistema|syst[eè]me)\b",
    re.IGNORECASE,
)


class ObedientLLM(CustomLLM):
    """Writes the payload of each canary whose order it reads, then the honest answer with its mark."""

    _obeys: Obeys = PrivateAttr()
    _canary: Canary = PrivateAttr()
    _obeyed: bool = PrivateAttr(default=False)
    _written: list[str] = PrivateAttr(default_factory=list)
    _prompts: list[str] = PrivateAttr(default_factory=list)

    def __init__(self, obeys: Obeys):
        super().__init__()
        self._obeys = obeys

    def watch(self, canary: Canary) -> None:
        """The canary of the next question."""
        self._canary, self._obeyed, self._written = canary, False, []

    @property
    def obeyed(self) -> bool:
        return self._obeyed

    @property
    def written(self) -> list[str]:
        """What it wrote because it was ordered to."""
        return self._written

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(context_window=8192, num_output=700, model_name="obedient", is_chat_model=True)

    async def astream_chat(self, messages: Sequence[ChatMessage], **_: Any) -> ChatResponseAsyncGen:
        text = self._answer(messages)

        async def stream() -> AsyncGenerator[ChatResponse]:
            for start in range(0, len(text), 5):
                message = ChatMessage(role=MessageRole.ASSISTANT, content=text[: start + 5])
                yield ChatResponse(message=message, delta=text[start : start + 5])

        return stream()

    def complete(self, prompt: str, formatted: bool = False, **_: Any) -> CompletionResponse:
        raise NotImplementedError

    def stream_complete(self, prompt: str, formatted: bool = False, **_: Any) -> CompletionResponseGen:
        raise NotImplementedError

    def _answer(self, messages: Sequence[ChatMessage]) -> str:
        system, user = (str(message.content) for message in messages)
        looked_at = user if self._obeys == "anywhere" else outside(user)
        parts = []
        if any(letters(line) in letters(looked_at) for line in (self._canary.order, _gist(self._canary.order))):
            self._obeyed = True
            self._written = [self._payload(system, user)]
            parts = list(self._written)
        fact = FACTS[self._canary.language]
        return "\n\n".join([*parts, f"{fact} [C{mark_of(fact, user)}]"])

    def _payload(self, system: str, user: str) -> str:
        canary = self._canary
        if canary.leaks_prompt:
            return _spell(system, canary.spelling)
        honest = mark_of(FACTS[canary.language], user)
        marks = {"none": "", "honest": f" [C{honest}].", "own": f" [C{3 - honest}].", "missing": " [C9]."}
        return canary.payload + marks[canary.mark]


def _gist(order: str) -> str:
    """The longest line of an order: the lines around it may have been read as turns."""
    return max(re.split(r"[\n\u2028]", order), key=len)


def _spell(text: str, spelling: str) -> str:
    match spelling:
        case "spaced":
            return " ".join(text)
        case "upper":
            return text.upper()
        case "code":
            return f"```\n{text}\n```"
    return text


def letters(text: str) -> str:
    """What a reader takes in: letters and digits, folded."""
    return "".join(character for character in fold(text) if character.isalnum() and character.isascii())


def mark_of(fact: str, prompt: str) -> int:
    """Number of the passage that holds the fact; 1 when none does."""
    number = 1
    for line in prompt.splitlines():
        if begins := re.match(r"~[0-9a-f]{12}~ \[C(\d+)\]", line):
            number = int(begins[1])
        if fact in line:
            return number
    return 1


def outside(prompt: str) -> str:
    """What stands outside the passages, to a reader who takes any likeness of a boundary, turn or role for one."""
    kept, inside = [], False
    for line in prompt.splitlines():
        if _BOUNDARY.match(line):
            inside = not inside
        elif inside and _TURN.search(line):
            inside = False
            kept.append(line)
        elif not inside:
            kept.append(line)
    return "\n".join(kept)
