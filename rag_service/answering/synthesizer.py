"""The response synthesizer: the first answerer that can answers, and a decision is made about what it says.

    what a file is about → its outline      ┐
    an operation over a table → computed    │
    a JSON schema → a model extracts        │
    passages → a model writes               ├→ confidence, doubts, decision
    passages, no model → quotes, or places  │
    nothing relevant → why                  ┘

LlamaIndex's own synthesizers call the model several times when the context overflows, and verify nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import llama_index.core.instrumentation as instrument
from llama_index.core.base.response.schema import RESPONSE_TYPE, Response
from llama_index.core.indices.prompt_helper import ChatPromptHelper, PromptHelper
from llama_index.core.instrumentation.events.synthesis import SynthesizeEndEvent, SynthesizeStartEvent
from llama_index.core.prompts.mixin import PromptDictType
from llama_index.core.response_synthesizers.base import BaseSynthesizer
from llama_index.core.schema import NodeWithScore, QueryType
from llama_index.core.types import RESPONSE_TEXT_TYPE

from rag_service.answering.answerers.computed import ComputedAnswers
from rag_service.answering.answerers.extracted import ExtractedAnswers, find_nothing
from rag_service.answering.answerers.overview import FileOverviews
from rag_service.answering.answerers.quoted import QuotedAnswers
from rag_service.answering.answerers.written import WrittenAnswers
from rag_service.answering.cache import AnswerCache
from rag_service.answering.decision.conclusion import CheckGuardrails, Concluded, Concluder
from rag_service.answering.drafts.draft import Answerer
from rag_service.answering.places import CertainOrPlaces
from rag_service.answering.prompt.notices import explain_refusal
from rag_service.answering.prompt.templates import Prompts
from rag_service.answering.quoting.quoter import Quoter
from rag_service.answering.replies import say
from rag_service.answering.tools.toolbox import Tools
from rag_service.domain import Answer
from rag_service.models.judge.judges import WatchedJudge
from rag_service.models.llm.model import ChatModel
from rag_service.retrieval.query import AnswerRun, RagQuery
from rag_service.settings import Settings
from rag_service.tables.asking.answers import TableAnswers
from rag_service.unpicklable import Unpicklable

dispatcher = instrument.get_dispatcher(__name__)  # type: ignore[attr-defined]  # not in its __all__


class CitedResponse(Response):
    """A LlamaIndex response with the whole answer; its metadata hold id, decision, confidence and citations."""

    def __init__(self, answer: Answer, nodes: list[NodeWithScore], signals: Mapping[str, float] = MappingProxyType({})):
        """`signals`: what the confidence is made of."""
        metadata = {
            "answer_id": str(answer.id),
            "decision": answer.decision.value,
            "confidence": answer.confidence.value,
            "citations": answer.citations,
        }
        super().__init__(response=answer.text, source_nodes=nodes, metadata=metadata)
        self.answer = answer
        self.signals = signals


class CitedSynthesizer(Unpicklable, BaseSynthesizer):
    """Makes answers with verified citations from what was found for a `RagQuery`."""

    def __init__(
        self,
        chat: ChatModel,
        prompts: Prompts,
        settings: Settings,
        *,
        check_guardrails: CheckGuardrails,
        judge: WatchedJudge | None,
        tables: TableAnswers | None,
        quoter: Quoter,
    ):
        """
        Args:
            chat: writes the answer, unless the run names another model.
            prompts: templates and messages.
            settings: limits and switches.
            check_guardrails: called where the index declares guardrails.
            judge: decides about reworded sentences, and whether an answer answers its question, once it has passed its
                examination; None: reworded sentences stay unchecked.
            tables: computes answers from tables; None: they are only quoted.
            quoter: quotes passages where there is no chat model, or it fails.
        """
        # LlamaIndex's helpers pack prompts: the default ones load a tokenizer, and `prompt/packing.py` packs ours.
        super().__init__(
            llm=chat.llm,
            prompt_helper=PromptHelper(tokenizer=str.split),
            chat_prompt_helper=ChatPromptHelper(tokenizer=str.split),
        )
        self.chat = chat
        self._prompts = prompts
        self._concluder = Concluder(prompts, settings.answers, check_guardrails)
        overview = FileOverviews(prompts=prompts, settings=settings.answers)
        computed = ComputedAnswers(tables=tables, prompts=prompts, settings=settings.answers)
        self._written = WrittenAnswers(prompts, settings, judge, quoter)
        quoted = QuotedAnswers(prompts, settings.answers, judge, quoter)
        # A doubtful reading of a table does not stand in a model's way, but is better than nothing.
        doubtful = (replace(overview, takes_doubtful=True), replace(computed, takes_doubtful=True))
        self._answerers: Sequence[Answerer] = (overview, computed, self._written, quoted, *doubtful)
        self._extracted = ExtractedAnswers(prompts, settings, judge)
        without_model = CertainOrPlaces(self._answer, quoted, prompts)
        self._answer_without_model = without_model.answer if judge else AnswerCache(without_model.answer).answer

    def offer_tools(self, tools: Tools) -> None:
        """Let models that can call tools use these."""
        self._written.tools = tools

    async def asynthesize(
        self,
        query: QueryType,
        nodes: list[NodeWithScore],
        additional_source_nodes: Sequence[NodeWithScore] | None = None,
        **_: Any,
    ) -> RESPONSE_TYPE:
        """Answer a `RagQuery` from the passages in `nodes`, in their order.

        Raises:
            ModelError: the model fails and has no fallback.
            ContextOverflowError: question and instructions alone fill the window.
        """
        if not isinstance(query, RagQuery):
            raise TypeError(f"CitedSynthesizer needs a RagQuery, not {type(query).__name__}.")
        dispatcher.event(SynthesizeStartEvent(query=query))
        run = replace(query.run, retrieved=query.run.found.choose(nodes))
        answer = self._answer_without_model if run.model.only_quotes else self._answer
        concluded = await answer(run)
        response = CitedResponse(concluded.answer, nodes, concluded.signals)
        dispatcher.event(SynthesizeEndEvent(query=query, response=response))
        return response

    async def _answer(self, run: AnswerRun) -> Concluded:
        schema = run.question.schema
        for answerer in self._answerers if schema is None else (self._extracted,):
            draft = await answerer.answer(run)
            if draft is not None:
                return await self._concluder.conclude(run, draft)
        text, doubt = explain_refusal(run.found, self._prompts)
        answer = await say(run, text, run.language, doubt, self._prompts)
        return Concluded(answer=answer if schema is None else replace(answer, extraction=find_nothing(schema)))

    # The rest of LlamaIndex's interface.

    def get_response(self, query_str: str, text_chunks: Sequence[str], **_: Any) -> RESPONSE_TEXT_TYPE:
        raise TypeError("CitedSynthesizer cites stored passages, not loose texts: use `asynthesize` with a RagQuery.")

    async def aget_response(self, query_str: str, text_chunks: Sequence[str], **_: Any) -> RESPONSE_TEXT_TYPE:
        return self.get_response(query_str, text_chunks)

    def _get_prompts(self) -> PromptDictType:
        return {}

    def _update_prompts(self, prompts: PromptDictType) -> None:
        return
