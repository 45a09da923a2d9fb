"""Requests as queries, and results as response bodies."""

from __future__ import annotations

import re
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from rag_service.api.http.problems import FieldError, InvalidRequestError
from rag_service.api.http.schemas import (
    AnswerBody,
    CitationBody,
    ContextBody,
    FlaggedBody,
    GuardrailCheckBody,
    GuardrailsBody,
    ModelCallBody,
    PassageBody,
    ReasonBody,
    RelatedBody,
    SearchBody,
    SearchRequest,
    SourceBody,
    StepBody,
    TimingsBody,
)
from rag_service.domain import (
    Answer,
    Citation,
    Condition,
    ConditionGroup,
    DocumentRef,
    Filters,
    FilterTree,
    GuardrailCheck,
    Hit,
    Identity,
    Location,
    Operator,
)
from rag_service.errors import InputError
from rag_service.settings import Settings
from rag_service.store.search.conditions import MAX_DEPTH, check_tree
from rag_service.word_boxes import with_boxes

if TYPE_CHECKING:
    from rag_service.retrieval.query import RagQuery

SNIPPET_CHARS = 300
_SURROGATE = re.compile("[\ud800-\udfff]")  # what Python reads from an argument that is not UTF-8
_CONDITION = {"field", "operator", "value"}
_Body = TypeVar("_Body", bound=msgspec.Struct)


def read_query(request: SearchRequest, settings: Settings, identity: Identity) -> RagQuery:
    """The query of a request, with defaults filled in; an InvalidRequestError names every invalid field."""
    from rag_service.retrieval.query import RagQuery  # loads LlamaIndex, which a remote client does not need

    where, wrong = (None, []) if request.filter is None else read_filter(request.filter)
    texts = {
        "query": [request.query],
        "source": [request.source or ""],
        "fileName": [request.file_name or ""],
        "tags": request.tags,
        "fields": [*request.fields, *request.fields.values()],
    }
    errors = [
        *find_question_errors("query", request.query, settings),
        *find_range_errors(request.top_k, request.similarity_threshold, settings),
        *find_unstorable(texts),
        *wrong,
    ]
    if errors:
        raise InvalidRequestError(errors)
    return RagQuery(
        request.query.strip(),
        identity=identity,
        top_k=settings.retrieval.top_k if request.top_k is None else request.top_k,
        threshold=request.similarity_threshold,
        filters=Filters(
            corpus_ids=tuple(request.corpus_ids),
            document_ids=tuple(request.document_ids),
            file_name=request.file_name or None,
            source=request.source or None,
            tags=tuple(request.tags),
            fields=request.fields,
            where=where,
            must_exist=True,
        ),
    )


def read_filter(raw: Mapping[str, Any]) -> tuple[FilterTree | None, list[FieldError]]:
    """(filter tree, errors); errors name the place, e.g. `filter.and[1].value`."""
    try:
        tree = _read_tree(raw, "filter", depth=1)
        check_tree(tree)
    except InputError as error:
        place = error.field or "filter"
        return None, [FieldError(place, error.message.removeprefix(f"{place}: ").rstrip("."))]
    return tree, []


def _read_tree(raw: Any, path: str, *, depth: int) -> FilterTree:
    if depth > MAX_DEPTH + 1:
        raise InputError(f"must be nested at most {MAX_DEPTH} levels deep.", field=path)
    if not isinstance(raw, dict):
        raise InputError("must be an object with a condition or with one of and, or, not.", field=path)
    if len(raw) == 1 and (combine := next(iter(raw))) in ("and", "or", "not"):
        if not isinstance(raw[combine], list):
            raise InputError("must be a list of conditions.", field=f"{path}.{combine}")
        parts = [
            _read_tree(part, f"{path}.{combine}[{number}]", depth=depth + 1) for number, part in enumerate(raw[combine])
        ]
        return ConditionGroup(combine=combine, parts=tuple(parts))
    return _read_condition(raw, path)


def _read_condition(raw: Mapping[str, Any], path: str) -> Condition:
    if unknown := sorted(raw.keys() - _CONDITION):
        raise InputError(
            "is not part of a condition; those are field, operator and value.", field=f"{path}.{unknown[0]}"
        )
    if not isinstance(raw.get("field"), str):
        raise InputError("must be the name of a field.", field=f"{path}.field")
    operator = raw.get("operator", "==")
    if operator not in list(Operator):
        raise InputError(f"must be one of {', '.join(Operator)}.", field=f"{path}.operator")
    value: Any = raw.get("value")
    items: list[Any] = value if isinstance(value, list) else [value]
    if any(not isinstance(item, str | int | float | None) for item in items):
        raise InputError("must be a string, a number, a boolean or a list of these.", field=f"{path}.value")
    return Condition(
        field=raw["field"], operator=Operator(operator), value=tuple(items) if isinstance(value, list) else value
    )


def find_question_errors(name: str, text: str, settings: Settings) -> Iterable[FieldError]:
    """An error for a question that is blank or too long."""
    if is_blank(text):
        yield FieldError(name, "must not be empty")
    elif len(text) > settings.limits.query_max_chars:
        yield FieldError(name, f"must have at most {settings.limits.query_max_chars} characters, but has {len(text)}")


def find_range_errors(top_k: int | None, threshold: float | None, settings: Settings) -> Iterable[FieldError]:
    """An error for `topK` and `similarityThreshold` if they are out of range."""
    if top_k is not None and not 1 <= top_k <= settings.retrieval.max_top_k:
        yield FieldError("topK", f"must be from 1 to {settings.retrieval.max_top_k}")
    if threshold is not None and not 0 <= threshold <= 1:
        yield FieldError("similarityThreshold", "must be from 0 to 1")


def is_blank(text: str) -> bool:
    """Whether a text has only white space, control and zero-width characters."""
    return not any(map(str.isprintable, text.replace(" ", "")))


def find_unstorable(texts: Mapping[str, Iterable[str]]) -> Iterable[FieldError]:
    """An error for each field with a character that PostgreSQL cannot hold."""
    for name, values in texts.items():
        text = "".join(values)
        if "\0" in text:
            yield FieldError(name, "must not contain the character NUL")
        elif _SURROGATE.search(text):
            yield FieldError(name, "must be valid Unicode text")


def present(kind: type[_Body], item: Any, /, **given: Any) -> _Body:
    """A domain value as a body: its attributes that the body has, nested values likewise, and what is given."""
    shared = {name: getattr(item, name) for name in kind.__struct_fields__ if hasattr(item, name)}
    return msgspec.convert(SimpleNamespace(**shared | given), kind, from_attributes=True)


def describe_place(document: DocumentRef, location: Location | None) -> str:
    """A place that a person can open: "rapport.pdf, page 3", "production.xlsx, sheet Stocks, cell C12".

    The file name, or the title when there is none, then every part of the location that is set,
    from the widest to the narrowest; a row is left out where a cell says the same.
    """
    parts = [document.file_name or document.title]
    if location is None:
        return parts[0]
    if location.part:
        parts.append(location.part)
    if location.slide is not None:
        parts.append(f"slide {location.slide}")
    if location.page is not None:
        parts.append(f"page {location.page}")
    if location.sheet:
        parts.append(f"sheet {location.sheet}")
    if location.headings:
        parts.append(f"section {' > '.join(location.headings)}")
    if location.cell:
        parts.append(f"{'cells' if ':' in location.cell else 'cell'} {location.cell}")
    elif location.row is not None and location.paragraph is not None:
        parts.append(f"row {location.row} of the table after paragraph {location.paragraph}")
    elif location.row is not None:
        parts.append(f"row {location.row}")
    elif location.paragraph is not None:
        parts.append(f"paragraph {location.paragraph}")
    if location.path:
        parts.append(location.path)
    if location.time:
        parts.append(f"at {location.time}")
    return ", ".join(parts)


def present_hit(kind: type[_Body], hit: Hit) -> _Body:
    """A passage as SourceBody, RelatedBody or PassageBody."""
    chunk, document = hit.chunk, hit.chunk.document
    location = chunk.spans[0].location if chunk.spans else None
    if location is not None and kind is PassageBody:
        location = with_boxes(location, chunk.spans, chunk.start, chunk.end)
    return present(
        kind,
        document,
        document_id=document.id,
        chunk_id=chunk.id,
        chunk_index=chunk.index,
        score=hit.scores.relevance,
        scores=hit.scores,
        location=location,
        place=describe_place(document, location),
        text=chunk.text,
        start=chunk.start,
        end=chunk.end,
        metadata=chunk.metadata,
    )


def present_context(hits: Iterable[Hit], *, first_mark: int = 1) -> list[ContextBody]:
    """The passages given to the model, [C1] or that of `first_mark` first."""
    bodies = []
    for mark, hit in enumerate(hits, start=first_mark):
        text = " ".join(hit.chunk.text.split())
        snippet = text if len(text) <= SNIPPET_CHARS else text[: SNIPPET_CHARS - 1].rsplit(maxsplit=1)[0] + "…"
        document_id = hit.chunk.document.id
        bodies.append(ContextBody(mark=mark, document_id=document_id, chunk_index=hit.chunk.index, snippet=snippet))
    return bodies


def present_citation(citation: Citation, hits: Iterable[Hit]) -> CitationBody:
    """A citation with the title and place of its document, which is that of one of the passages."""
    documents = (hit.chunk.document for hit in hits)
    document = next((document for document in documents if document.id == citation.document_id), None)
    return present(
        CitationBody,
        citation,
        title=None if document is None else document.title,
        place=None if document is None else describe_place(document, citation.location),
    )


def present_answer(answer: Answer) -> AnswerBody:
    return present(
        AnswerBody,
        answer,
        answer_id=answer.id,
        answer=answer.text,
        reasons=[present(ReasonBody, reason) for reason in answer.reasons],
        confidence=answer.confidence.value,
        confidence_parts=answer.confidence,
        sources=[present_hit(SourceBody, hit) for hit in answer.sources],
        context_used=present_context(answer.shown),
        citations=[present_citation(citation, (*answer.sources, *answer.shown)) for citation in answer.citations],
        flagged=[FlaggedBody(start=start, end=end) for start, end in answer.flagged],
        guardrails=present_guardrails(answer.guardrails),
        latency_ms=round(answer.latency_ms, 1),
        timings=TimingsBody(
            retrieval_ms=answer.retrieval_ms, model_calls=[present(ModelCallBody, call) for call in answer.calls]
        ),
        steps=[present(StepBody, step) for step in answer.steps],
        prompt_tokens=answer.tokens.prompt,
        completion_tokens=answer.tokens.completion,
        related=[present_hit(RelatedBody, hit) for hit in answer.related],
    )


async def present_search(search: Callable[[RagQuery], Awaitable[Sequence[Hit]]], query: RagQuery) -> SearchBody:
    """Run a search, and show what it found and how long it took."""
    started = time.perf_counter()
    hits = await search(query)
    return SearchBody(
        passages=[present_hit(PassageBody, hit) for hit in hits],
        language=query.found.plan.language,
        latency_ms=round((time.perf_counter() - started) * 1000, 1),
    )


def present_guardrails(checks: Sequence[GuardrailCheck]) -> GuardrailsBody:
    bodies = [present(GuardrailCheckBody, check) for check in checks]
    violations = [body for body in bodies if not body.passed]
    return GuardrailsBody(passed=not violations, checks=bodies, violations=violations)
