"""The response synthesizer: chooses how a question is answered, and completes the answer.

    what a file is about → its outline      ┐
    an operation over a table → computed    │
    several parts, no model → each by itself├→ confidence, doubts, decision
    passages → prompt → written, checked    │
    nothing relevant → why                  ┘

LlamaIndex's own synthesizers call the model several times when the context overflows, and verify nothing.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from functools import partial
from typing import Any
from uuid import uuid4

import llama_index.core.instrumentation as instrument
import structlog
from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.base.response.schema import RESPONSE_TYPE, Response
from llama_index.core.indices.prompt_helper import ChatPromptHelper, PromptHelper
from llama_index.core.instrumentation.events.synthesis import SynthesizeEndEvent, SynthesizeStartEvent
from llama_index.core.prompts.mixin import PromptDictType
from llama_index.core.response_synthesizers.base import BaseSynthesizer
from llama_index.core.schema import NodeWithScore, QueryType
from llama_index.core.types import RESPONSE_TEXT_TYPE

from rag_service.answering.answer_gate import doubt_answer, is_refusal
from rag_service.answering.checked_answer import AnswerChecker, CheckedAnswer
from rag_service.answering.computed_answer import (
    COMPUTED_CONFIDENCE,
    check_computed,
    choose_passages,
)
from rag_service.answering.confidence import NO_CONFIDENCE, estimate_confidence, rate_written, read_fit, read_signals
from rag_service.answering.conversation import FindPassages, history_for, make_standalone
from rag_service.answering.events import AnswerDelta, AnswerEvent, CitationChecked, SourcesFound
from rag_service.answering.file_overview import describe_files
from rag_service.answering.given_answers import GivenAnswers
from rag_service.answering.guards.guardrails import GUARDRAIL_TYPES
from rag_service.answering.judged import judge_answer
from rag_service.answering.places import find_places, read_warning, take_turns, write_places
from rag_service.answering.prompt.notices import explain_refusal, mentioning, tell_files
from rag_service.answering.prompt.packing import Prompted, shorten_prompt, write_prompt
from rag_service.answering.prompt.reasons import Doubt, decide, find_doubts, make_reasons
from rag_service.answering.prompt.templates import Prompts
from rag_service.answering.tools.steps import Steps, offer_tokens
from rag_service.answering.tools.toolbox import Tools
from rag_service.answering.writing import Writing, emit_text
from rag_service.domain import (
    Answer,
    AnswersQuestion,
    Confidence,
    Decision,
    FoundPlace,
    GuardrailCheck,
    Hit,
    Purpose,
    Reason,
    TokenCount,
)
from rag_service.errors import ModelError
from rag_service.language.detection import choose_language
from rag_service.language.words import count_tokens
from rag_service.models.judge.judges import WatchedJudge
from rag_service.models.llm.model import ChatDelta, ChatModel, collect
from rag_service.observability.tracing import span
from rag_service.retrieval.amendments import find_amendments
from rag_service.retrieval.named_files import NamedFiles
from rag_service.retrieval.postprocessors import find_related
from rag_service.retrieval.query import RagQuery, Task, ignore
from rag_service.settings import Settings
from rag_service.tables.asking.answers import ComputedAnswer, TableAnswers
from rag_service.unpicklable import Unpicklable

# What the documents shown forbid to say, checked against the text of an answer.
CheckGuardrails = Callable[[RagQuery, Sequence[Hit], str], Awaitable[tuple[GuardrailCheck, ...]]]

NO_MODEL = "small-talk"  # `Answer.model` of a reply to a message that asks for nothing

log = structlog.get_logger(__name__)
_MAX_FLAGGED = 100  # sentences of an answer that are reported as unproved
_NUMBER = re.compile(r"\d+k?", re.IGNORECASE)
dispatcher = instrument.get_dispatcher(__name__)  # type: ignore[attr-defined]  # not in its __all__


class CitedResponse(Response):
    """A LlamaIndex response with the whole answer; its metadata hold id, decision, confidence and citations."""

    def __init__(self, answer: Answer, nodes: list[NodeWithScore]):
        metadata = {
            "answer_id": str(answer.id),
            "decision": answer.decision.value,
            "confidence": answer.confidence.value,
            "citations": answer.citations,
        }
        super().__init__(response=answer.text, source_nodes=nodes, metadata=metadata)
        self.answer = answer


class CitedSynthesizer(Unpicklable, BaseSynthesizer):
    """Writes answers with verified citations from the passages of a `RagQuery`."""

    def __init__(
        self,
        chat: ChatModel,
        prompts: Prompts,
        settings: Settings,
        *,
        check_guardrails: CheckGuardrails,
        judge: WatchedJudge | None,
        tables: TableAnswers | None,
    ):
        """
        Args:
            chat: writes the answer, unless the query names another model.
            prompts: templates and messages.
            settings: limits and switches.
            check_guardrails: called where the index declares guardrails.
            judge: decides about reworded sentences, and whether an answer answers its question, once it has passed its
                examination; None: reworded sentences stay unchecked.
            tables: computes answers from tables; None: they are only quoted.
        """
        # LlamaIndex's helpers pack prompts: the default ones load a tokenizer, and `prompt/packing.py` packs ours.
        super().__init__(
            llm=chat.llm,
            prompt_helper=PromptHelper(tokenizer=str.split),
            chat_prompt_helper=ChatPromptHelper(tokenizer=str.split),
        )
        self.chat = chat
        self._prompts = prompts
        self._settings = settings
        self._check_guardrails = check_guardrails
        self._judge = judge
        self._tables = tables
        self._tools: Tools | None = None
        self._given = GivenAnswers(self._answer_or_show_places)
        self._fit = read_fit(settings.answers.confidence_fit)

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
        query.model = query.model or self.chat
        dispatcher.event(SynthesizeStartEvent(query=query))
        if not query.model.only_quotes:
            answer = await self._answer(query, nodes)
        elif self._judge is None:
            answer = await self._given.answer(query, nodes)
        else:
            answer = await self._answer_or_show_places(query, nodes)
        response = CitedResponse(answer, nodes)
        dispatcher.event(SynthesizeEndEvent(query=query, response=response))
        return response

    async def _answer(self, query: RagQuery, nodes: Sequence[NodeWithScore]) -> Answer:
        sources, files = query.hits(nodes), query.found.files
        if files is not None and files.missing and not files.found:
            sources = mentioning(files.missing[0], sources)
        if files is not None and files.outlines:
            computed = self._describe_files(query, files)
        else:
            computed = await self._compute(query, sources)
        # A doubtful reading of a table does not stand in a model's way, which can ask for the operation that it means.
        if computed is not None and (query.model.only_quotes or not computed.wording.warning):
            return await self._answer_computed(query, sources, computed)
        if gathered := self._gather(query, sources):
            return await self._answer_written(query, gathered)
        if computed is not None:
            return await self._answer_computed(query, sources, computed)
        text, doubt = explain_refusal(query.found, self._prompts)
        return await self._say(query, text, query.found.plan.language, doubt)

    def _gather(self, query: RagQuery, sources: tuple[Hit, ...]) -> tuple[Hit, ...]:
        """The passages that are returned: what the last answers cited, what was found, what remembered answers cited.

        Where the caller has chosen the passages, or an owner's postprocessor has, earlier ones are not added.
        """
        if query.model.only_quotes:
            return sources
        if query.given is not None or query.postprocessed:
            return sources or self._worth_searching(query)
        now = {hit.chunk.id for hit in sources}
        earlier, before = (tuple(_recalled(query, hits, now)) for hits in (query.earlier, query.earlier_still))
        found_now = sources or (() if earlier or before else self._worth_searching(query))
        return _unique(*earlier, *found_now, *before)

    def _next(self, query: RagQuery) -> Iterator[Hit]:
        """What was found after the passages that are returned: a prompt takes as many as its tokens allow."""
        is_narrow = query.top_k < self._settings.retrieval.top_k or query.found.files is not None
        if query.model.only_quotes or query.postprocessed or query.given is not None or is_narrow:
            return
        others = frozenset() if query.versions is None else query.versions.others
        for hit in query.found.hits:
            is_relevant = query.threshold is None or hit.scores.relevance >= query.threshold
            if is_relevant and hit.chunk.document.id not in others:
                yield hit

    def _worth_searching(self, query: RagQuery) -> tuple[Hit, ...]:
        """The nearest passages, although none is near enough, for a model that can search again in other words."""
        if not self._offers_tools(query) or query.threshold is not None or query.postprocessed:
            return ()
        files = query.found.files
        return () if files is not None and files.missing else query.found.hits[: query.top_k]

    async def reply(self, query: RagQuery, text: str, *, language: str) -> CitedResponse:
        """A reply to a message that asks for nothing: no retrieval, no model."""
        answer = await self._say(query, text, language, Doubt.NO_QUESTION)
        return CitedResponse(replace(answer, model=NO_MODEL), [])

    async def do_task(self, query: RagQuery, task: Task) -> CitedResponse:
        """What a program wants of the model alone; what the task says where there is none, or it fails."""
        language = choose_language(query.question, query.languages)
        if query.model.only_quotes:
            return await self.reply(query, task.otherwise, language=language)
        messages = [ChatMessage(role=MessageRole.USER, content=task.prompt)]
        try:
            text, last = await collect(query.model.stream(messages, purpose=Purpose.TASK))
        except ModelError as error:
            log.warning("task_not_done", exc_info=error)
            return await self.reply(query, task.otherwise, language=language)
        answer = await self._say(query, text, language, Doubt.NO_QUESTION)
        tokens = _count_tokens(last, count_tokens(task.prompt), text)
        answer = replace(answer, tokens=tokens, incomplete=last.is_cut, finish_reason=last.reported_reason)
        return CitedResponse(answer, [])

    async def condense(self, query: RagQuery, find: FindPassages) -> None:
        """Make the question standalone; what was said before stays for the prompt. `find` searches for it alone."""
        query.history = history_for(query.model, query.turns, query.remembered)
        query.query_str, query.follow_up = await make_standalone(
            query.question, query.turns, query.history, query.model, self._prompts, find
        )

    def _reasons(self, doubts: Sequence[Doubt], language: str) -> tuple[Reason, ...]:
        return make_reasons(doubts, self._prompts.messages, language)

    async def _say(self, query: RagQuery, text: str, language: str, doubt: Doubt) -> Answer:
        """An answer that the service itself gives, because of a doubt."""
        retrieval = query.retrieval
        timings = {} if retrieval is None else retrieval.timings_ms
        await query.emit(SourcesFound(sources=(), shown=(), timings_ms=timings))
        await query.emit(AnswerDelta(text=text))
        return Answer(
            id=uuid4(),
            question=query.question,
            language=language,
            text=text,
            sources=(),
            shown=(),
            citations=(),
            decision=decide([doubt]),
            reasons=self._reasons([doubt], language),
            confidence=NO_CONFIDENCE,
            tokens=TokenCount(prompt=0, completion=0, estimated=False),
            latency_ms=0.0,
            model=query.model.model_name,
            searched_for=query.searched_for,
            related=() if retrieval is None else find_related(retrieval.hits),
        )

    def _describe_files(self, query: RagQuery, files: NamedFiles) -> ComputedAnswer | None:
        """What the files are about that a question names; None: nothing of them was found."""
        found = query.found
        _, warning = tell_files(found, found.hits, self._prompts)
        return describe_files(files, found.hits, found.plan.language, warning) if found.hits else None

    async def _compute(self, query: RagQuery, sources: Sequence[Hit]) -> ComputedAnswer | None:
        """The answer computed from the tables of what was found, below the default threshold, too.

        Numbers that nothing mentions may be what values are compared with: "opened after 2020". What a postprocessor of
        an owner dropped is not computed with.
        """
        found = query.found
        if self._tables is None or not all(_NUMBER.fullmatch(name) for name in found.absent):
            return None
        hits = sources if query.postprocessed or query.threshold is not None else (*sources, *found.hits)
        text = query.question
        if (versions := query.versions) is not None:
            hits = tuple(hit for hit in hits if hit.chunk.document.id not in versions.others)
            text = versions.question
        return await self._tables.compute(text, hits, language=found.plan.language, identity=query.identity)

    def _offers_tools(self, query: RagQuery) -> bool:
        return self._tools is not None and self._settings.answers.max_steps > 0 and query.model.offers_tools()

    async def _answer_or_show_places(self, query: RagQuery, nodes: Sequence[NodeWithScore]) -> Answer:
        """Return an answer if it is certain, else the places nearest to the question: nothing is shown before that."""
        emit, events = query.emit, list[AnswerEvent]()

        async def hold(event: AnswerEvent) -> None:
            events.append(event)

        query.emit = hold
        try:
            answer = await self._answer(query, nodes)
            found: tuple[FoundPlace, ...] = ()
            if answer.decision is Decision.UNCERTAIN:
                warning = query.evidence.preface if query.evidence.places else read_warning(answer)
                found = await self._find_places(query, nodes, answer)
        finally:
            query.emit = emit
        if found:
            doubtful = self._prompts.message("doubtful", answer.language)
            answer = write_places(answer, found, introduction=warning or doubtful)
            events = [event for event in events if isinstance(event, SourcesFound)]
            events.append(AnswerDelta(text=answer.text))
        for event in events:
            await emit(event)
        return answer

    async def _find_places(
        self, query: RagQuery, nodes: Sequence[NodeWithScore], answer: Answer
    ) -> tuple[FoundPlace, ...]:
        """Return the places of a question and of each of its parts, by turns; none for an outline of files."""
        if query.found.files is not None and query.found.files.outlines:
            return ()
        lists = [await self._find_places_for(query, nodes, answer)]
        for part in query.parts:
            part.query.model, part.query.emit = query.model, ignore
            own = await self._answer(part.query, part.nodes)
            if own.decision is not Decision.OUT_OF_SCOPE:
                lists.append(await self._find_places_for(part.query, part.nodes, own, part=part.text))
            query.degraded = query.degraded or part.query.degraded
        return take_turns(lists)

    async def _find_places_for(
        self, query: RagQuery, nodes: Sequence[NodeWithScore], answer: Answer, *, part: str | None = None
    ) -> Iterator[FoundPlace]:
        """Return the places of one question, whose answer has chosen windows already, unless it was computed."""
        is_computed = not query.evidence.places
        if is_computed:
            prompted = write_prompt(query, query.hits(nodes), prompts=self._prompts, settings=self._settings)
            await collect(query.model.stream(prompted.messages))
        return find_places(answer if is_computed else None, query.evidence, part=part)

    async def _answer_computed(self, query: RagQuery, sources: tuple[Hit, ...], computed: ComputedAnswer) -> Answer:
        chosen = choose_passages(computed, sources, query.found.hits, limit=query.top_k)
        prompted = write_prompt(query, chosen, prompts=self._prompts, settings=self._settings)
        of_files = query.found.files is not None and bool(query.found.files.outlines)
        doubt = Doubt.FILE_UNKNOWN if of_files else Doubt.TABLE_READING
        prompted = replace(prompted, doubts={doubt: bool(computed.wording.warning)})
        shown = prompted.context.hits
        checked = check_computed(computed, shown, language=query.found.plan.language)
        await query.emit(SourcesFound(sources=chosen, shown=shown, timings_ms=query.found.timings_ms))
        await query.emit(AnswerDelta(text=checked.text))
        for citation in checked.citations:
            await query.emit(CitationChecked(citation=citation))
        no_model = ChatDelta(text="", prompt_tokens=0, completion_tokens=0)
        return await self._complete(query, chosen, prompted, checked, no_model, is_computed=True)

    async def _answer_written(self, query: RagQuery, sources: tuple[Hit, ...]) -> Answer:
        """Return the answer of the chat model, or of what quotes in its place; amendments are added to the sources."""
        if query.threshold is None:
            sources = (*sources, *find_amendments(sources, query.found.hits))
        with span("prompt"):
            shown = _unique(*sources, *self._next(query))
            prompted = write_prompt(query, shown, prompts=self._prompts, settings=self._settings)
        shown = prompted.context.hits
        documents = [(str(hit.chunk.document.id), hit.scores.relevance) for hit in shown]
        log.debug("prompt", documents=documents, prompt=[message.content for message in prompted.messages])
        await query.emit(SourcesFound(sources=sources, shown=shown, timings_ms=query.found.timings_ms))
        judge = self._judge if self._judge is not None and self._judge.is_used else None
        withholds = self._settings.answers.withhold_unverified
        emit = query.emit if judge is None else partial(emit_text, query)
        writing = self._begin_writing(query, prompted, emit=ignore if withholds else emit)
        last = await writing.run()
        if last.is_cut:
            await writing.add(f"\n\n{prompted.unfinished}")
        checked = await writing.finish()
        answers = None
        if judge is not None:
            checked, answers = await self._ask_judge(judge, query, checked, writing)
        is_endless = last.finish_reason == "length" and not checked.has_proof
        if is_endless and query.model.fallback is not None:
            # A model that loops, counts or is too weak to come to an end: the passages say more.
            log.warning("answer_degraded", without="model", code="cut", model=query.model.model_name)
            last = await writing.quote_instead()
            checked, answers = await writing.finish(), None
        if withholds:
            checked = checked.withhold(self._prompts.message("withheld", query.found.plan.language))
            await query.emit(AnswerDelta(text=checked.text))
        if withholds or judge is not None:
            for citation in checked.citations:
                await query.emit(CitationChecked(citation=citation))
        prompted, steps = writing.outcome(), writing.steps
        prompted = prompted.cut() if last.is_cut else prompted
        cited = {citation.chunk_id for citation in checked.citations}
        sources = _unique(*sources, *(hit for hit in steps.shown if hit.chunk.id in cited))
        query.degraded = "degraded" in prompted.quote_signals
        if steps.steps:
            sources = tuple({hit.chunk.id: hit for hit in (*sources, *steps.found)}.values())
        if query.model_error is not None:
            prompted = prompted.failed()
        if any(citation.formula for citation in checked.citations):  # the model chose what to compute
            prompted = replace(prompted, doubts={**prompted.doubts, Doubt.TABLE_READING: True})
        answer = await self._complete(query, sources, prompted, checked, last, answers=answers)
        return replace(answer, steps=tuple(steps.steps))

    def _begin_writing(self, query: RagQuery, prompted: Prompted, *, emit: Callable[[Any], Awaitable[None]]) -> Writing:
        """`emit` receives what is final while the text arrives."""
        steps = self._begin_steps(query, prompted)
        rule = self._prompts.message("tools", query.found.plan.language) if steps.offered else ""

        def shorten(long: Prompted) -> Prompted:
            shorter = shorten_prompt(query, long, prompts=self._prompts, settings=self._settings, taken=steps.tokens)
            return shorter.offering(rule) if rule else shorter

        return Writing(
            query,
            prompted.offering(rule) if rule else prompted,
            steps,
            make_checker=partial(self._make_checker, query, prompted),
            shorten=shorten,
            emit=emit,
        )

    def _make_checker(self, query: RagQuery, prompted: Prompted, steps: Steps) -> AnswerChecker:
        language, ids = query.found.plan.language, {hit.chunk.id for hit in steps.shown}
        return AnswerChecker(
            steps.shown,
            others=[hit for hit in query.found.hits if hit.chunk.id not in ids],
            question=query.question,
            harmless=[prompted.refusal, prompted.introduction, prompted.model_failed, prompted.unfinished],
            notice=self._prompts.message("withheld", language),
            language=language,
            secrets=[prompted.secret],
            computed=steps.computed,
        )

    def _begin_steps(self, query: RagQuery, prompted: Prompted) -> Steps:
        """What the model may call while it answers: nothing, if it cannot call tools or the window is full."""
        model, language = query.model, query.found.plan.language
        calls = self._settings.answers.max_steps if self._tools is not None and model.offers_tools() else 0
        room = model.prompt_limit(language) - prompted.tokens - offer_tokens()
        tools = self._tools if calls and room > 0 else None
        return Steps(
            toolbox=None
            if tools is None
            else tools.of(
                query.identity, query.filters, threshold=query.threshold, language=language, question=query.question
            ),
            boundary=prompted.boundary,
            calls_left=calls,
            room=room,
            shown=list(prompted.context.hits),
            say=partial(self._prompts.message, language=language),
        )

    def offer_tools(self, tools: Tools) -> None:
        """Let models that can call tools use these."""
        self._tools = tools

    async def _ask_judge(
        self, judge: WatchedJudge, query: RagQuery, checked: CheckedAnswer, writing: Writing
    ) -> tuple[CheckedAnswer, AnswersQuestion | None]:
        """The answer as the judge decides it, and whether it answers the question."""
        answers = None
        if query.model_error is None:  # else it would be asked at the server that has just failed
            checked, answers = await judge_answer(
                judge,
                checked,
                writing.steps.shown,
                question=query.query_str,
                prompt=writing.sent,
                computed=writing.steps.computed,
                language=query.found.plan.language,
            )
        return checked, answers

    async def _complete(
        self,
        query: RagQuery,
        sources: tuple[Hit, ...],
        prompted: Prompted,
        checked: CheckedAnswer,
        last: ChatDelta,
        *,
        is_computed: bool = False,
        answers: AnswersQuestion | None = None,
    ) -> Answer:
        """The answer with its confidence, decision and reasons, from a text whose citations are checked."""
        text, language, shown = checked.text, query.found.plan.language, prompted.context.hits
        index = query.found.index
        query.signals = read_signals(sources, prompted.quote_signals) if sources else {}
        confidence = self._rate(query.signals, sources, checked, answers)
        if is_computed:
            confidence = replace(confidence, value=max(confidence.value, COMPUTED_CONFIDENCE))
        said = text.removeprefix(prompted.preface)
        refused = is_refusal(said, checked.citations, refusal=prompted.refusal, language=language)
        guardrails: tuple[GuardrailCheck, ...] = ()
        if not GUARDRAIL_TYPES.isdisjoint(index.ingest.chunk_types.values()):
            guardrails = await self._check_guardrails(query, shown, text)
        is_proved = checked.has_proof and not checked.flagged and not checked.refuted
        # Relevance, names and a model's choice of an operation are signs that an answer may be about something else: a
        # judge has looked, and has read what was computed, with its formula and the rows that were left out.
        of_search = {} if is_proved and answers is AnswersQuestion.YES else prompted.doubts
        doubts = find_doubts(
            {
                **of_search,
                Doubt.FILE_UNKNOWN: prompted.doubts.get(Doubt.FILE_UNKNOWN, False),
                **doubt_answer(query, checked.citations, shown, answers, is_computed=is_computed),
                Doubt.NOT_ANSWERED: refused,
                Doubt.MODEL_FAILED: query.model_error is not None,
                Doubt.INCOMPLETE: last.is_cut,
                Doubt.CONTRADICTED: checked.refuted > 0,
                Doubt.UNPROVED: not checked.has_proof or bool(checked.flagged or checked.withheld),
                Doubt.RULE_BROKEN: not all(check.passed for check in guardrails),
                Doubt.JOINED_QUESTION: query.follow_up is not None and query.follow_up.joined,
                Doubt.LITTLE_CONTEXT: prompted.context.tokens < index.query.minimum_context_tokens,
                Doubt.LOW_CONFIDENCE: answers is None and confidence.value < self._fit.least,
            }
        )
        return Answer(
            id=uuid4(),
            question=query.question,
            language=language,
            text=text,
            sources=sources,
            shown=shown,
            citations=checked.citations,
            decision=decide(doubts),
            reasons=self._reasons(doubts, language),
            confidence=confidence,
            tokens=_count_tokens(last, prompted.tokens, text),
            latency_ms=0.0,
            model=query.model.model_name,
            unmarked_sentences=0 if refused else len(checked.unmarked),
            withheld_sentences=checked.withheld,
            flagged=() if refused else checked.flagged[:_MAX_FLAGGED],
            guardrails=guardrails,
            model_error=query.model_error,
            answers_question=answers,
            incomplete=last.is_cut,
            finish_reason=last.reported_reason,
            searched_for=query.searched_for,
        )

    def _rate(
        self,
        signals: Mapping[str, float],
        sources: Sequence[Hit],
        checked: CheckedAnswer,
        answers: AnswersQuestion | None,
    ) -> Confidence:
        if answers is None:
            return estimate_confidence(
                self._fit, signals, sources, refuted=checked.refuted, has_proof=checked.has_proof
            )
        return rate_written(sources, proved=checked.proved, answers=answers is AnswersQuestion.YES)

    # The rest of LlamaIndex's interface.

    def get_response(self, query_str: str, text_chunks: Sequence[str], **_: Any) -> RESPONSE_TEXT_TYPE:
        raise TypeError("CitedSynthesizer cites stored passages, not loose texts: use `asynthesize` with a RagQuery.")

    async def aget_response(self, query_str: str, text_chunks: Sequence[str], **_: Any) -> RESPONSE_TEXT_TYPE:
        return self.get_response(query_str, text_chunks)

    def _get_prompts(self) -> PromptDictType:
        return {}

    def _update_prompts(self, prompts: PromptDictType) -> None:
        return


def _unique(*hits: Hit) -> tuple[Hit, ...]:
    """Passages in their order, each once."""
    unique: dict[str, Hit] = {}
    for hit in hits:
        unique.setdefault(hit.chunk.id, hit)
    return tuple(unique.values())


def _recalled(query: RagQuery, hits: Sequence[Hit], found_now: Set[str]) -> Iterator[Hit]:
    """Yield passages of earlier answers that the request leaves: its threshold, its versions and the files it names."""
    found = {hit.chunk.id: hit for hit in query.found.hits}
    others = frozenset() if query.versions is None else query.versions.others
    named = () if query.found.files is None else query.found.files.document_ids
    for hit in hits:
        chunk = hit.chunk
        scores = found[chunk.id].scores if chunk.id in found else hit.scores
        is_relevant = query.threshold is None or scores.relevance >= query.threshold
        if is_relevant and chunk.document.id not in others and (not named or chunk.document.id in named):
            yield replace(hit, scores=scores, from_turn=None if chunk.id in found_now else hit.from_turn)


def _count_tokens(last: ChatDelta, prompt_estimate: int, text: str) -> TokenCount:
    """As the model's server counted them, else our estimate."""
    prompt, completion = last.prompt_tokens, last.completion_tokens
    return TokenCount(
        prompt=prompt_estimate if prompt is None else prompt,
        completion=count_tokens(text) if completion is None else completion,
        estimated=prompt is None or completion is None,
    )
