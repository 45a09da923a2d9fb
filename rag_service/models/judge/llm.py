"""The chat model as judge: all claims of an answer in one structured call, each verdict with a quote.

A verdict "supported" counts only with the words that show it; the caller looks for them in the passage. So a model
that would say yes to everything proves nothing that the passage does not hold.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import structlog
from llama_index.core.base.llms.types import ChatMessage

from rag_service.domain import Purpose
from rag_service.errors import ModelOutputError
from rag_service.models.judge.judge import JudgedClaim, Verdict, extract
from rag_service.models.llm.call import numbered_schema
from rag_service.models.llm.model import ChatModel

log = structlog.get_logger(__name__)

MAX_CLAIMS = 40  # of one call; further ones are not judged
INSTRUCTION_TOKENS = 700
REPLY_TOKENS = 64
VERDICT_TOKENS = 120  # one verdict with its quote
# The quote before the verdict: a model decides better after it has looked.
_VERDICT = {"quote": {"type": "string"}, "supported": {"type": "boolean"}}
CHARS_PER_TOKEN = 3  # low, so that languages with short tokens fit too

WritePrompt = Callable[[Sequence[JudgedClaim]], Sequence[ChatMessage]]  # numbers the claims from 1


class LLMJudge:
    """Asks the chat model. A claim without one clear verdict is not judged; `ModelError` is raised to the caller."""

    def __init__(self, chat: ChatModel, write_prompt: WritePrompt):
        self.name = chat.model_name
        self._chat = chat
        self._write_prompt = write_prompt

    async def judge(self, claims: Sequence[JudgedClaim]) -> list[Verdict | None]:
        """Verdicts with quotes, in the order of the claims. Raises ModelError if the model cannot be used."""
        window = self._chat.context_window
        asked = claims[: max(1, min(MAX_CLAIMS, window // 2 // VERDICT_TOKENS))]
        room = (window - INSTRUCTION_TOKENS - VERDICT_TOKENS * len(asked)) * CHARS_PER_TOKEN // len(asked)
        shown = [replace(claim, passage=extract(claim.passage, claim.evidence, max(400, room))) for claim in asked]
        try:
            reply = await self._chat.complete_json(
                self._write_prompt(shown),
                numbered_schema("verdicts", len(asked), _VERDICT),
                purpose=Purpose.JUDGE,
                max_tokens=REPLY_TOKENS + VERDICT_TOKENS * len(asked),
            )
            verdicts = parse_verdicts(reply, len(asked))
        except ModelOutputError as error:
            log.warning("judge_verdicts_invalid", model=self._chat.model_name, reason=error.message)
            return [None] * len(claims)
        return verdicts + [None] * (len(claims) - len(asked))


def parse_verdicts(reply: str, count: int) -> list[Verdict | None]:
    """Verdicts of claims 1..count, in their order; None for a claim with no valid verdict, or with several.

    Raises ModelOutputError, without any of the reply's text, if the reply is not JSON of the form asked for.
    """
    try:
        entries = json.loads(reply)["verdicts"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ModelOutputError("The reply is not JSON in the requested form.") from error
    if not isinstance(entries, list):
        raise ModelOutputError("The verdicts are not a list.")
    found: dict[int, list[Verdict | None]] = {}
    for entry in entries:
        if isinstance(entry, dict) and type(entry.get("id")) is int:
            found.setdefault(entry["id"], []).append(_verdict(entry))
    return [given[0] if len(given := found.get(number, [])) == 1 else None for number in range(1, count + 1)]


def _verdict(entry: dict[str, Any]) -> Verdict | None:
    supported, quote = entry.get("supported"), entry.get("quote")
    if not isinstance(supported, bool):
        return None
    if not supported:
        return Verdict(entailed=False)
    quote = quote.strip() if isinstance(quote, str) else ""
    return Verdict(entailed=True, quote=quote) if quote else None  # unproved
