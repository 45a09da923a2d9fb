"""The chat model as judge: all sentences of an answer beside all passages that its writer saw, in one structured call.

Each verdict has a quote. "Supported" counts only with the words that show it, and "contradicted" only with those that
stand against it; the caller looks for them in the passages.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import structlog
from llama_index.core.base.llms.types import ChatMessage

from rag_service.domain import AnswersQuestion, Purpose
from rag_service.errors import ModelOutputError, PromptTooLongError
from rag_service.language.languages import FALLBACK_LANGUAGE
from rag_service.models.judge.judge import JudgedAnswer, JudgedClaim, Judgement, Verdict
from rag_service.models.llm.call import numbered_schema
from rag_service.models.llm.model import ChatModel
from rag_service.models.servers.resilience import Slots

log = structlog.get_logger(__name__)

CLAIMS_AT_ONCE = 40  # of one call
REPLY_TOKENS = 64
VERDICT_TOKENS = 120  # one verdict with its quote
SHORT_BEFORE = 2_000  # characters of what stands before the claims, where the window holds no more
# The quote before the verdict: a model decides better after it has looked.
_VERDICT = {"quote": {"type": "string"}, "supported": {"type": "boolean"}}

_ANSWERS = {"type": "string", "enum": [word.value for word in AnswersQuestion]}


@dataclass(frozen=True, kw_only=True)
class JudgePrompt:
    """The messages of one call."""

    messages: Sequence[ChatMessage]
    tokens: int  # our count of them


class WritePrompt(Protocol):
    """Writes the prompt that asks for verdicts on the claims of an answer, numbered from 1."""

    def __call__(self, answer: JudgedAnswer, *, is_short: bool) -> JudgePrompt:
        """`is_short`: only the passages that the claims cite, where the whole prompt does not fit the window."""


class LLMJudge:
    """Asks the chat model. A claim without one clear verdict is not judged; `ModelError` is raised to the caller."""

    def __init__(self, chat: ChatModel, write_prompt: WritePrompt, *, revision: str = ""):
        """
        Args:
            chat: the model.
            write_prompt: makes the messages of a call.
            revision: changes with what `write_prompt` writes.
        """
        self.name = chat.model_name
        self.revision = revision
        self._chat = chat
        self._write_prompt = write_prompt

    @property
    def slots(self) -> Slots:
        """Those of the chat model."""
        return self._chat.slots

    @property
    def claims_at_once(self) -> int:
        """Return how many claims one call is asked about: their verdicts take a quarter of a small window."""
        return max(1, min(CLAIMS_AT_ONCE, self._chat.context_window // 4 // VERDICT_TOKENS))

    async def judge(self, claims: Sequence[JudgedClaim]) -> list[Verdict | None]:
        """Verdicts with quotes, in the order of the claims. Raises ModelError if the model cannot be used."""
        language = claims[0].language if claims else None
        judgement = await self.judge_answer(JudgedAnswer(question="", claims=claims, language=language))
        return list(judgement.verdicts)

    async def judge_answer(self, answer: JudgedAnswer) -> Judgement:
        """Verdicts with quotes, in the order of the claims, and whether the answer answers the question.

        A prompt that is too long, by our count or by the server's, is made once more with the cited passages only.
        Raises ModelError if the model cannot be used.
        """
        unjudged = Judgement(verdicts=[None] * len(answer.claims))
        try:
            for is_short in (False, True):
                try:
                    return await self._ask(_shorten(answer) if is_short else answer, is_short=is_short)
                except PromptTooLongError as error:
                    log.warning("judge_prompt_too_long", model=self.name, tokens=error.tokens, is_short=is_short)
        except ModelOutputError as error:
            log.warning("judge_verdicts_invalid", model=self.name, reason=error.message)
        return unjudged

    async def _ask(self, answer: JudgedAnswer, *, is_short: bool) -> Judgement:
        """One call. Raises PromptTooLongError if the window does not hold it, ModelOutputError for another reply."""
        asked = len(answer.claims)
        reply_tokens = REPLY_TOKENS + VERDICT_TOKENS * asked
        prompt = self._write_prompt(answer, is_short=is_short)
        if prompt.tokens > self._chat.prompt_limit(answer.language or FALLBACK_LANGUAGE, answer_tokens=reply_tokens):
            too_long = PromptTooLongError("The judge's prompt does not fit into the model's window.")
            too_long.tokens = prompt.tokens
            raise too_long
        reply = await self._chat.complete_json(
            prompt.messages,
            make_schema(asked, with_answer=bool(answer.question)),
            purpose=Purpose.JUDGE,
            max_tokens=reply_tokens,
            tools=() if is_short or answer.prompt is None else answer.prompt.tools,
        )
        judgement = parse_judgement(reply, asked)
        return judgement if answer.question else replace(judgement, answers=None)


def _shorten(answer: JudgedAnswer) -> JudgedAnswer:
    """Return the answer with the end of what stands before its claims, and no question: its beginning is not shown."""
    first, *rest = answer.claims
    if len(first.before) <= SHORT_BEFORE:
        return answer
    return replace(answer, question="", claims=[replace(first, before=first.before[-SHORT_BEFORE:]), *rest])


def make_schema(claims: int, *, with_answer: bool) -> dict[str, Any]:
    """Return the schema of a reply about so many claims; verdicts come first, because the model has looked then."""
    schema = numbered_schema("verdicts", claims, _VERDICT)
    if with_answer:
        schema["properties"]["answers"] = _ANSWERS
        schema["required"].append("answers")
    return schema


def parse_judgement(reply: str, count: int) -> Judgement:
    """Verdicts of claims 1..count, in their order; None for a claim with no valid verdict, or with several.

    Raises ModelOutputError, without any of the reply's text, if the reply is not JSON of the form asked for.
    """
    try:
        said = json.loads(reply)
        entries, answers = said["verdicts"], said.get("answers")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ModelOutputError("The reply is not JSON in the requested form.") from error
    if not isinstance(entries, list):
        raise ModelOutputError("The verdicts are not a list.")
    found: dict[int, list[Verdict | None]] = {}
    for entry in entries:
        if isinstance(entry, dict) and type(entry.get("id")) is int:
            found.setdefault(entry["id"], []).append(_verdict(entry))
    return Judgement(
        verdicts=[given[0] if len(given := found.get(number, [])) == 1 else None for number in range(1, count + 1)],
        answers=AnswersQuestion(answers) if answers in _ANSWERS["enum"] else None,
    )


def _verdict(entry: dict[str, Any]) -> Verdict | None:
    supported, quote = entry.get("supported"), entry.get("quote")
    if not isinstance(supported, bool):
        return None
    return Verdict(entailed=supported, quote=quote.strip() if isinstance(quote, str) else "")
