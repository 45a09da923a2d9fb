"""The tools at work: as one caller, within the scope and filters of one request, and without changing anything.

A tool narrows what a request may look at and never widens it: filters are added to the request's, and documents are
looked up among those that they leave, under row-level security. What a tool returns is bounded.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from rag_service.answering.tools.arithmetic import calculate
from rag_service.answering.tools.definitions import DEFINITIONS, ComputeTable, ReadDocument, SearchDocuments
from rag_service.domain import (
    Chunk,
    Condition,
    ConditionGroup,
    DocumentRef,
    Filters,
    Hit,
    Identity,
    Location,
    Operator,
    Scores,
)
from rag_service.errors import InputError
from rag_service.indices import IndexDefinition
from rag_service.language.languages import FALLBACK_LANGUAGE, load_language
from rag_service.language.words import count_tokens, fold
from rag_service.retrieval.found import Found
from rag_service.retrieval.question import Question
from rag_service.store.database import Database
from rag_service.store.search.reach import ReachedDocument, find_documents, read_chunks
from rag_service.tables.asking.answers import ComputedAnswer, TableAnswers
from rag_service.tables.asking.proposals import AskedCondition, AskedOperation
from rag_service.tables.sentences import CitedCells, rounded, write_number

READ_TOKENS = 1_500  # of one reading, unless the caller has less room
_CELL_CHUNKS = 3  # passages that show the cells of a result
_HEADINGS = 20  # named where a place is not found

Search = Callable[[Question], Awaitable[Found]]  # `CitedQueryEngine.search`


@dataclass(frozen=True, kw_only=True)
class ToolResult:
    """What a tool found."""

    hits: tuple[Hit, ...] = ()  # passages, in the order to show them
    text: str = ""  # besides: a computed value, or where to read on
    next_part: int | None = None  # of a reading that did not come to the end, from 1
    computed: ComputedPassage | None = None  # `text` once more, for answers that cite it


@dataclass(frozen=True, kw_only=True)
class ComputedPassage:
    """The result of an operation over a table as a passage, which sentences can cite."""

    hit: Hit
    cells: CitedCells  # behind the result; of several the first


@dataclass(frozen=True, kw_only=True)
class Tools:
    """What all callers share."""

    search: Search
    database: Database
    indices: Mapping[str, IndexDefinition]
    tables: TableAnswers
    top_k: int  # passages of one search
    say: Callable[[str, str], str]  # (message, language) → a sentence of the service

    def of(
        self,
        identity: Identity,
        filters: Filters | None = None,
        *,
        threshold: float | None = None,
        language: str = "",
        question: str = "",
    ) -> Toolbox:
        """Return the tools of one caller.

        Args:
            identity: whose permissions they have.
            filters: what they may look at; None: all that the identity may.
            threshold: relevance that every passage must reach, 0..1; None: see `ChoosePassages`.
            language: of computed sentences, ISO 639-1; empty: English.
            question: that they are used for; an operation that its words ask for is certain.
        """
        return Toolbox(
            tools=self,
            identity=identity,
            filters=filters or Filters(),
            threshold=threshold,
            language=language,
            question=question,
        )


@dataclass(frozen=True, kw_only=True)
class Toolbox:
    """The tools as one caller."""

    tools: Tools
    identity: Identity
    filters: Filters
    threshold: float | None = None
    language: str = ""
    question: str = ""

    async def call(self, name: str, arguments: Mapping[str, Any], *, max_tokens: int = READ_TOKENS) -> ToolResult:
        """Call a tool by its name.

        Raises:
            InputError: there is no such tool or document, or an argument is wrong. The message says what there is.
            EmbeddingError, RerankError, StoreError: it cannot work now.
        """
        if name not in DEFINITIONS:
            raise InputError(f"There is no such tool; there are {', '.join(DEFINITIONS)}.", field="name")
        match DEFINITIONS[name].read(arguments):
            case SearchDocuments() as wanted:
                return await self.search(wanted)
            case ReadDocument() as wanted:
                return await self.read(wanted, max_tokens=max_tokens)
            case ComputeTable() as wanted:
                return await self.compute(wanted)
        raise AssertionError(name)

    async def search(self, wanted: SearchDocuments) -> ToolResult:
        """Passages down to the last one above the threshold, best first."""
        filters = self.filters
        if wanted.documents:
            found = await self._find(wanted.documents)
            filters = replace(filters, document_ids=tuple(document.id for document in found))
        dates = [
            Condition(field="updated_at", operator=operator, value=_read_date(value, name))
            for name, operator, value in (
                ("after", Operator.GREATER_OR_EQUAL, wanted.after),
                ("before", Operator.LESS, wanted.before),
            )
            if value
        ]
        if dates:
            parts = (*dates, *(() if filters.where is None else (filters.where,)))
            filters = replace(filters, where=ConditionGroup(combine="and", parts=parts))
        question = Question(
            wanted.query.strip(),
            identity=self.identity,
            filters=filters,
            top_k=self.tools.top_k,
            threshold=self.threshold,
            recorded=False,
        )
        hits = (await self.tools.search(question)).passages
        return ToolResult(hits=hits, text="" if hits else self._say("tool_nothing"))

    async def read(self, wanted: ReadDocument, *, max_tokens: int = READ_TOKENS) -> ToolResult:
        """Return the passages of a document from a place on, as many as fit into the tokens, at least one."""
        (document, *_) = await self._find([wanted.document])
        chunks = await self._chunks(document)
        first = _find_place(chunks, wanted.place)
        kept, used = 0, 0
        for chunk in chunks[first:]:
            used += count_tokens(chunk.text)
            if kept and used > max_tokens:
                break
            kept += 1
        end = first + kept
        following = _part_of(chunks[end]) if end < len(chunks) else None
        left = self._say("tool_end")
        if following:
            left = self._say("tool_read_on").format(next=following, last=_part_of(chunks[-1]))
        return ToolResult(hits=tuple(map(_unrated, chunks[first:end])), text=left, next_part=following)

    async def compute(self, wanted: ComputeTable) -> ToolResult:
        """The result of an operation over a table, and passages with its cells, or of arithmetic on given figures."""
        language = self.language or FALLBACK_LANGUAGE
        if wanted.operation == "calculate":
            value = calculate(wanted.expression or "")
            return ToolResult(
                text=f"{wanted.expression} = {write_number(rounded(value), load_language(language).tables)}"
            )
        (document, *_) = await self._find([wanted.document])
        asked = AskedOperation(
            operation=wanted.operation,
            sheet=wanted.sheet,
            column=wanted.column,
            filters=[
                AskedCondition(column=one.column, comparison=one.comparison, values=one.values)
                for one in wanted.filters
            ],
            group=wanted.group,
            best=wanted.best,
            limit=wanted.limit,
        )
        found = await self.tools.tables.run(
            asked, document.id, question=self.question, language=language, identity=self.identity
        )
        if found is None:
            return ToolResult(text=load_language(language).tables.answers["nothing"].format(where="") + ".")
        starts = [cells.start for cells in found.quotes if cells.start is not None]
        chunks = await self._chunks(document)
        holding = [chunk for chunk in chunks if any(chunk.start <= start < chunk.end for start in starts)]
        result = _make_passage(found, chunks[0].document)
        hits = tuple(map(_unrated, holding[:_CELL_CHUNKS]))
        return ToolResult(hits=hits, text=result.hit.chunk.text, computed=result)

    def _say(self, message: str) -> str:
        return self.tools.say(message, self.language or FALLBACK_LANGUAGE)

    async def _find(self, names: Sequence[str]) -> list[ReachedDocument]:
        """Documents within reach with one of the names; raises InputError if there are none."""
        async with self.tools.database.transaction(self.identity) as connection:
            found = await find_documents(connection, self.filters, names)
        if not found:
            raise InputError("There is no such document within reach; search without naming one.", field="document")
        return found

    async def _chunks(self, document: ReachedDocument) -> list[Chunk]:
        index = self.tools.indices.get(document.index_name)
        hidden = frozenset[str]() if index is None else index.ingest.hidden_types
        async with self.tools.database.transaction(self.identity) as connection:
            chunks = await read_chunks(connection, document.id, types=self.filters.chunk_types, hidden=hidden)
        if not chunks:
            raise InputError("The document has no text that can be read.", field="document")
        return chunks


def _read_date(text: str, name: str) -> str:
    try:
        return date.fromisoformat(text[:10]).isoformat()
    except ValueError as error:
        raise InputError(f"{name} must be a date, YYYY-MM-DD.", field=name) from error


def _find_place(chunks: Sequence[Chunk], place: str | None) -> int:
    """Return the number of the first passage at a place; raises InputError if there is none."""
    wanted = fold(place or "").strip()
    if not wanted:
        return 0
    kind, _, rest = wanted.partition(" ")
    if kind == "part" and rest.isdecimal():
        later = [number for number, chunk in enumerate(chunks) if _part_of(chunk) >= int(rest)]
        if later:
            return later[0]
    labels = [[fold(label) for span in chunk.spans for label in _labels(span.location)] for chunk in chunks]
    for fits in (lambda label: label == wanted, lambda label: wanted in label):
        for number, named in enumerate(labels):
            if any(map(fits, named)):
                return number
    headings = dict.fromkeys(
        span.location.headings[-1] for chunk in chunks for span in chunk.spans if span.location.headings
    )
    told = f" Headings: {'; '.join(list(headings)[:_HEADINGS])}." if headings else ""
    raise InputError(f"There is no such place; it has the parts 1 to {_part_of(chunks[-1])}.{told}", field="place")


def _part_of(chunk: Chunk) -> int:
    return chunk.index + 1


def _labels(location: Location) -> list[str]:
    """Return the names of a place."""
    named = {
        "page": location.page, "slide": location.slide, "sheet": location.sheet, "row": location.row,
        "cell": location.cell, "paragraph": location.paragraph,
    }  # fmt: skip
    labels = [f"{kind} {value}" for kind, value in named.items() if value is not None]
    return [*labels, *location.headings, *filter(None, (location.part, location.path))]


def _unrated(chunk: Chunk) -> Hit:
    return Hit(chunk=chunk, scores=Scores(relevance=0.0))


def _make_passage(found: ComputedAnswer, document: DocumentRef) -> ComputedPassage:
    """Return the sentences of a result, with the formulas behind them."""
    sentences = ["".join(part for part in one if isinstance(part, str)) + "." for one in found.wording.sentences]
    formulas = dict.fromkeys(cells.formula for cells in found.quotes if cells.formula)
    text = "\n".join([*sentences, *(f"Formula: {formula}" for formula in formulas)])
    chunk = Chunk(id="computed", document=document, index=0, text=text, start=0, end=len(text))
    return ComputedPassage(hit=_unrated(chunk), cells=next(iter(found.quotes)))
