"""The chat model as judge: all claims of an answer, and the answer itself, in one structured call.

Each verdict has a quote. A verdict "supported" counts only with the words that show it; the caller looks for them in
the passage. So a model that would say yes to everything proves nothing that the passage does not hold.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import structlog
from llama_index.core.base.llms.types import ChatMessage

from rag_service.domain import AnswersQuestion, Purpose
from rag_service.errors import ModelOutputError
from rag_service.models.judge.judge import JudgedAnswer, JudgedClaim, Judgement, Verdict, extract
from rag_service.models.llm.call import numbered_schema
from rag_service.models.llm.model import ChatModel
from rag_service.models.servers.resilience import Slots

log = structlog.get_logger(__name__)

MAX_CLAIMS = 40  # of one call; further ones are not judged
INSTRUCTION_TOKENS = 900
REPLY_TOKENS = 64
VERDICT_TOKENS = 120  # one verdict with its quote
# The quote before the verdict: a model decides better after it has looked.
_VERDICT = {"quote": {"type": "string"}, "supported": {"type": "boolean"}}
CHARS_PER_TOKEN = 3  # low, so that languages with short tokens fit too

_ANSWERS = {"type": "string", "enum": [word.value for word in AnswersQuestion]}

WritePrompt = Callable[[JudgedAnswer], Sequence[ChatMessage]]  # numbers the claims from 1


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

    async def judge(self, claims: Sequence[JudgedClaim]) -> list[Verdict | None]:
        """Verdicts with quotes, in the order of the claims. Raises ModelError if the model cannot be used."""
        language = claims[0].language if claims else None
        judgement = await self.judge_answer(JudgedAnswer(question="", text="", claims=claims, language=language))
        return list(judgement.verdicts)

    async def judge_answer(self, answer: JudgedAnswer) -> Judgement:
        """Verdicts with quotes, in the order of the claims, and whether the answer answers the question.

        Raises ModelError if the model cannot be used.
        """
        shown = self._fit(answer)
        asked = len(shown.claims)
        try:
            reply = await self._chat.complete_json(
                self._write_prompt(shown),
                make_schema(asked, with_answer=bool(answer.question)),
                purpose=Purpose.JUDGE,
                max_tokens=REPLY_TOKENS + VERDICT_TOKENS * asked,
            )
            judgement = parse_judgement(reply, asked)
        except ModelOutputError as error:
            log.warning("judge_verdicts_invalid", model=self._chat.model_name, reason=error.message)
            return Judgement(verdicts=[None] * len(answer.claims))
        return replace(judgement, verdicts=[*judgement.verdicts, *[None] * (len(answer.claims) - asked)])

    def _fit(self, answer: JudgedAnswer) -> JudgedAnswer:
        """What the model's window has room for: the first claims, with extracts of their passages."""
        window = self._chat.context_window
        text = answer.text[: window // 4 * CHARS_PER_TOKEN]
        asked = answer.claims[: max(1, min(MAX_CLAIMS, window // 2 // VERDICT_TOKENS))]
        if asked:
            left = (window - INSTRUCTION_TOKENS - VERDICT_TOKENS * len(asked)) * CHARS_PER_TOKEN
            room = max(400, (left - len(answer.question) - len(text)) // len(asked))
            asked = [replace(claim, passage=extract(claim.passage, claim.evidence, room)) for claim in asked]
        return replace(answer, text=text, claims=asked)


def make_schema(claims: int, *, with_answer: bool) -> dict[str, Any]:
    """The schema of a reply about so many claims; verdicts come first, because the model has looked then."""
    schema: dict[str, Any] = {"type": "object", "properties": {}, "required": []}
    if claims:
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
        entries, answers = said["verdicts"] if count else [], said.get("answers")
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
    if not supported:
        return Verdict(entailed=False)
    quote = quote.strip() if isinstance(quote, str) else ""
    return Verdict(entailed=True, quote=quote) if quote else None  # unproved
