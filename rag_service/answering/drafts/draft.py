"""What an answerer makes, and what makes an answerer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from rag_service.answering.drafts.checked_answer import CheckedAnswer
from rag_service.answering.drafts.doubts import Doubt
from rag_service.answering.quoting.quotes import Quotes
from rag_service.domain import AnswersQuestion, Extraction, Hit, Step, TokenCount
from rag_service.models.llm.model import ChatModel
from rag_service.retrieval.query import AnswerRun


@dataclass(frozen=True, kw_only=True)
class Draft:
    """An answer before it is decided whether it can be relied on."""

    checked: CheckedAnswer  # text and citations
    sources: tuple[Hit, ...]  # passages that are returned with it, best first
    shown: tuple[Hit, ...]  # those that it was made from, [C1] first
    context_tokens: int  # of these
    tokens: TokenCount
    model: ChatModel  # that wrote it, or quoted in the place of one
    refusal: str = ""  # the sentence for questions that the passages do not answer
    preface: str = ""  # what the service says before the answer
    doubts: Mapping[Doubt, bool] = field(default_factory=dict)  # that do not depend on its text
    model_error: str | None = None  # code of the error of the model that was to answer
    answers: AnswersQuestion | None = None  # what a judge says of the whole; None: it was not asked
    steps: tuple[Step, ...] = ()
    is_computed: bool = False  # it states values and quotes, each with its place: nothing was written
    is_cut: bool = False  # the model did not come to its end
    finish_reason: str = "stop"
    quotes: Quotes | None = None  # what it quotes; None: nothing
    extraction: Extraction | None = None  # the same as JSON; None: no schema was given

    @property
    def is_degraded(self) -> bool:
        """Whether it was made without what failed, and would be better another time."""
        return self.quotes is not None and self.quotes.is_degraded


class Answerer(Protocol):
    """Answers the questions that it can answer."""

    async def answer(self, run: AnswerRun) -> Draft | None:
        """Answer a question from what was found, emitting events meanwhile; None: it is another's to answer."""
