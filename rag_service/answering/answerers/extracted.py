"""Answers as JSON of the caller's schema: a chat model fills in the fields, and each value is proved like a sentence.

    passages, outline of the schema → JSON of the model → "field: value [C1 "words"]." → checked, judged → JSON

Code cannot tell that words are about a field: what stands letter by letter in a passage may be the value of another
year. So a value is verified only where a judge says so.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import structlog

from rag_service.answering.drafts.checked_answer import AnswerChecker, CheckedAnswer
from rag_service.answering.drafts.draft import Draft
from rag_service.answering.drafts.events import AnswerDelta, CitationChecked, SourcesFound
from rag_service.answering.drafts.judged import judge_answer
from rag_service.answering.prompt.notices import mentioned_sources, unique
from rag_service.answering.prompt.packing import ReadyPrompt, write_prompt
from rag_service.answering.prompt.templates import Prompts
from rag_service.answering.proof.claims import strip_marks
from rag_service.domain import (
    AnswersQuestion,
    Citation,
    CitationStatus,
    ExtractedValue,
    Extraction,
    Hit,
    TokenCount,
)
from rag_service.errors import ModelOutputError
from rag_service.language.words import count_tokens
from rag_service.models.judge.judges import WatchedJudge
from rag_service.models.llm.model import ChatModel
from rag_service.retrieval.answer_schema import AnswerSchema, ListShape, ObjectShape, Shape, ValueShape
from rag_service.retrieval.query import AnswerRun
from rag_service.settings import Settings

log = structlog.get_logger(__name__)

_TRIES = 2  # a reply that is no JSON is asked for once more
_MISSING = "The model found no value in the passages."
_REMOVED = "The value holds what may not be shown, such as an address that no passage has."
_UNNAMED = "The model named no passage."
_REASONS = {
    CitationStatus.MISATTRIBUTED: "The words stand in another passage than the model named.",
    CitationStatus.NOT_FOUND: "No passage has the words that the model named.",
}
_ORDER = tuple(CitationStatus)  # best first


@dataclass(frozen=True, kw_only=True)
class _Given:
    """A value as the model gave it."""

    pointer: str
    label: str
    value: Any  # None: there is none
    passage: int | None = None
    words: str = ""
    fault: str = ""  # why there is no value

    @property
    def line(self) -> str:
        """The value as a sentence of an answer, with its mark."""
        text = self.value if isinstance(self.value, str) else json.dumps(self.value)
        text = " ".join(strip_marks(text).replace("|", "/").split()).rstrip(".")
        words = " ".join(self.words.split())
        mark = "" if self.passage is None else f' [C{self.passage} "{words}"]' if words else f" [C{self.passage}]"
        return f"{self.label or 'Value'}: {text}{mark}."


class ExtractedAnswers:
    """Lets a chat model fill in the fields of a schema."""

    def __init__(self, prompts: Prompts, settings: Settings, judge: WatchedJudge | None) -> None:
        self._prompts = prompts
        self._settings = settings
        self._judge = judge

    async def answer(self, run: AnswerRun) -> Draft | None:
        """As `Answerer.answer`.

        Raises:
            ModelError: the model fails; ModelOutputError if it twice replies with something else than the JSON.
            ContextOverflowError: question, schema and instructions alone fill the window.
        """
        schema, sources = run.question.schema, mentioned_sources(run.found)
        shown = unique(*sources, *_found_beside(run))
        if schema is None or not shown:
            return None
        room = min(max(run.model.max_tokens, schema.reply_tokens), run.model.context_window // 2)
        prompted = write_prompt(
            run, shown, prompts=self._prompts, settings=self._settings, taken=room - run.model.max_tokens
        )
        shown = prompted.context.hits
        await run.emit(SourcesFound(sources=sources, shown=shown, timings_ms=run.found.timings_ms))
        reply, text = await _ask(run.model, prompted, schema, room)
        given = list(_read(schema.root, reply, "", ""))
        checked, answers = await self._check(run, prompted, [one for one in given if one.value is not None])
        extraction = _conclude(schema, reply, given, checked, keeps_open=not self._settings.answers.withhold_unverified)
        if self._settings.answers.withhold_unverified:
            checked = checked.withhold(prompted.notices.withheld)
        await run.emit(AnswerDelta(text=checked.text))
        for citation in checked.citations:
            await run.emit(CitationChecked(citation=citation))
        cited = {citation.chunk_id for citation in checked.citations}
        return Draft(
            checked=checked,
            sources=unique(*sources, *(hit for hit in shown if hit.chunk.id in cited)),
            shown=shown,
            context_tokens=prompted.context.tokens,
            tokens=TokenCount(prompt=prompted.tokens, completion=count_tokens(text), estimated=True),
            model=run.model,
            refusal=prompted.notices.refusal,
            doubts=prompted.notices.doubts,
            answers=answers,
            extraction=extraction,
        )

    async def _check(
        self, run: AnswerRun, prompted: ReadyPrompt, given: Sequence[_Given]
    ) -> tuple[CheckedAnswer, AnswersQuestion | None]:
        """Return the values as a text, a paragraph each, with what is known of its sentences."""
        notices, shown = prompted.notices, prompted.context.hits
        schema = run.question.schema
        labels = [] if schema is None else schema.labels
        checker = AnswerChecker(
            shown,
            question="\n".join([run.question.text, *labels]),
            harmless=notices.harmless,
            notice=notices.withheld,
            language=run.language,
            secrets=[prompted.secret],
        )
        for number, one in enumerate(given):
            checker.feed(f"\n\n{one.line}" if number else one.line)
        if not given:
            checker.feed(notices.refusal)
        _, checked = checker.finish()
        checked = checked.with_citations([_open(citation) for citation in checked.citations])
        if self._judge is None or not self._judge.is_used or not given:
            return checked, None
        return await judge_answer(self._judge, checked, shown, question=run.question.text, language=run.language)


def find_nothing(schema: AnswerSchema) -> Extraction:
    """Return the JSON of a search that found no passage."""
    given = list(_read(schema.root, None, "", ""))
    nothing = CheckedAnswer(text="", citations=(), unmarked=(), flagged=(), claims=(), withheld=0)
    return _conclude(schema, None, given, nothing, keeps_open=False)


def _found_beside(run: AnswerRun) -> Iterator[Hit]:
    """Yield what was found besides the sources: of a small document all of it."""
    question, found = run.question, run.found
    if found.is_filtered or question.given is not None or question.threshold is not None:
        return
    if not (found.passages or question.filters.document_ids or question.filters.file_name):
        return  # nothing is near enough, and no document was named
    yield from (hit for hit in found.hits if hit.chunk.document.id not in found.other_versions)


async def _ask(model: ChatModel, prompted: ReadyPrompt, schema: AnswerSchema, room: int) -> tuple[Any, str]:
    """Return what the model replies, as JSON and as text."""
    for _ in range(_TRIES):
        text = await model.complete_json(prompted.messages, schema.reply_schema(), max_tokens=room)
        try:  # a fence or a sentence may stand around it
            return json.loads(text[text.index("{") : text.rindex("}") + 1]), text
        except (ValueError, RecursionError):
            log.warning("extraction_unreadable", model=model.model_name, characters=len(text))
    raise ModelOutputError("The model did not reply with the JSON that it was asked for.")


def _read(shape: Shape, reply: Any, pointer: str, label: str) -> Iterator[_Given]:
    """Yield the values of the model's reply for a shape; one without a value for each field that it left out."""
    label = ", ".join(filter(None, (label, shape.label)))
    if isinstance(shape, ObjectShape):
        fields = reply if isinstance(reply, dict) else {}
        for name, one in shape.properties.items():
            yield from _read(one, fields.get(name), f"{pointer}/{_escape(name)}", label)
    elif isinstance(shape, ListShape):
        for number, entry in enumerate(_entries(reply)):
            yield from _read(shape.items, entry, f"{pointer}/{number}", f"{label} {number + 1}")
        if not _entries(reply):
            yield _Given(pointer=pointer, label=label, value=None, fault=_MISSING)
    else:
        yield _read_value(shape, reply, pointer, label)


def _read_value(shape: ValueShape, reply: Any, pointer: str, label: str) -> _Given:
    fields = reply if isinstance(reply, dict) else {"value": reply}
    value, words = fields.get("value"), fields.get("words")
    if value is None or value == "":
        return _Given(pointer=pointer, label=label, value=None, fault=_MISSING)
    try:
        value = shape.read(value)
    except ValueError as error:
        return _Given(pointer=pointer, label=label, value=None, fault=str(error))
    number = re.search(r"\d{1,6}", str(fields.get("passage")))
    return _Given(
        pointer=pointer,
        label=label,
        value=value,
        passage=int(number[0]) if number else None,
        words=words if isinstance(words, str) else "",
    )


def _entries(reply: Any) -> list[Any]:
    return reply if isinstance(reply, list) else []


def _escape(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")


def _open(citation: Citation) -> Citation:
    """Return the citation of a value that stands letter by letter in its passage: of which field, a judge must say."""
    if citation.status is not CitationStatus.VERIFIED:
        return citation
    return replace(citation, status=CitationStatus.UNCHECKED, method=None)


def _conclude(
    schema: AnswerSchema, reply: Any, given: Sequence[_Given], checked: CheckedAnswer, *, keeps_open: bool
) -> Extraction:
    """Return the JSON and what is known of each value; `keeps_open`: values stay that nobody has judged."""
    values, kept = list[ExtractedValue](), dict[str, Any]()
    end = 0
    for one in given:
        if one.value is None:
            values.append(ExtractedValue(pointer=one.pointer, value=None, status=None, reason=one.fault))
            continue
        start = end
        end = checked.text.find("\n\n", start)
        end = len(checked.text) if end < 0 else end + 2
        value = _weigh(one, checked, start, end)
        values.append(value)
        is_open = value.status is CitationStatus.UNCHECKED and value.reason is None
        if value.status is CitationStatus.VERIFIED or (is_open and keeps_open):
            kept[one.pointer] = value.value
    return Extraction(data=_build(schema.root, reply, "", kept), values=tuple(values))


def _weigh(given: _Given, checked: CheckedAnswer, start: int, end: int) -> ExtractedValue:
    """Return what characters [start, end) of the text prove of a value: as much as the worst of its sentences."""
    if any(start <= first < end for first, _ in checked.changed):
        not_found = CitationStatus.NOT_FOUND
        return ExtractedValue(pointer=given.pointer, value=None, status=not_found, reason=_REMOVED)
    best = [
        min((checked.citations[number] for number in claim.citations), key=_rank)
        for claim in checked.claims
        if start <= claim.sentence[0] < end and claim.citations
    ]
    worst = max(best, key=_rank, default=None)
    status = CitationStatus.NOT_FOUND if worst is None else worst.status
    reason = _UNNAMED if worst is None else worst.reason or _REASONS.get(worst.status)
    return ExtractedValue(pointer=given.pointer, value=given.value, status=status, reason=reason, citation=worst)


def _rank(citation: Citation) -> tuple[int, bool]:
    return _ORDER.index(citation.status), citation.reason is not None


def _build(shape: Shape, reply: Any, pointer: str, kept: Mapping[str, Any]) -> Any:
    """Return the JSON with the values that are kept, and null in the place of the others."""
    if isinstance(shape, ListShape):
        return [_build(shape.items, one, f"{pointer}/{number}", kept) for number, one in enumerate(_entries(reply))]
    if not isinstance(shape, ObjectShape):
        return kept.get(pointer)
    fields = reply if isinstance(reply, dict) else {}
    built = {
        name: _build(one, fields.get(name), f"{pointer}/{_escape(name)}", kept)
        for name, one in shape.properties.items()
    }
    if shape.nullable and all(value is None or value == [] for value in built.values()):
        return None
    optional = {name for name, one in shape.properties.items() if name not in shape.required and not one.nullable}
    return {name: value for name, value in built.items() if value is not None or name not in optional}
