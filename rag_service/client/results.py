"""Results of the service's methods, which display themselves in a notebook and on a terminal."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, overload
from uuid import UUID

from rag_service.answering.quoting.quotes import SHOWN_PLACES
from rag_service.api.agents.schemas import KeptAnswerBody
from rag_service.api.corpora.schemas import DocumentBody, ImportBody
from rag_service.api.http.schemas import (
    AnswerBody,
    CheckBody,
    CitationBody,
    PassageBody,
    PlaceBody,
    SentenceBody,
    SourceBody,
    ValueBody,
)
from rag_service.client.html import answer_html, passages_html, score_names, table_html
from rag_service.client.proof_words import CHECKED, SIGNS, describe_proof, describe_step, quoted_words

_SHOWN = 300  # characters of a passage on a terminal
# In names that users choose, these would steer the terminal of an administrator.
_UNSHOWN = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")

_UNSHOWN_IN_LINES = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, repr=False)
class Items(Sequence[T]):
    """A sequence that displays itself."""

    items: tuple[T, ...]

    @overload
    def __getitem__(self, index: int) -> T: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[T, ...]: ...

    def __getitem__(self, index: int | slice) -> T | tuple[T, ...]:
        return self.items[index]

    def __len__(self) -> int:
        return len(self.items)


@dataclass(frozen=True, kw_only=True, repr=False)
class TextCheck:
    """What the check makes of a text: `decision`, `sentences` with their status, `citations` with their quotes."""

    body: CheckBody  # everything, as the API sends it

    @property
    def decision(self) -> str:
        """can_proceed if every sentence is proved, uncertain, or out_of_scope if the text states nothing."""
        return self.body.decision

    @property
    def sentences(self) -> Sequence[SentenceBody]:
        """Each sentence that states something, with its status."""
        return self.body.sentences

    @property
    def citations(self) -> Sequence[CitationBody]:
        """What was found for the sentences; `mark` counts the passages from 1."""
        return self.body.citations

    def __repr__(self) -> str:
        lines = []
        for sentence in self.body.sentences:
            lines.append(f"{SIGNS[sentence.status]} {' '.join(sentence.text.split())}")
            for citation in (self.body.citations[number] for number in sentence.citations):
                quotes = "".join(f": “{one.quote}”" for one in quoted_words(citation))
                lines.append(f"    [C{citation.mark}] {describe_proof(citation)}{quotes}")
        told = " ".join(reason.text for reason in self.body.reasons)
        return _UNSHOWN_IN_LINES.sub("\ufffd", "\n".join([*lines, f"{CHECKED[self.body.decision]} {told}".strip()]))


@dataclass(frozen=True, kw_only=True, repr=False)
class CitedAnswer:
    """An answer with its proof."""

    question: str
    body: AnswerBody  # everything, as the API sends it

    @property
    def id(self) -> UUID:
        """Identifies the provenance record."""
        return self.body.answer_id

    @property
    def text(self) -> str:
        """The answer with its marks, such as [C1]."""
        return self.body.answer

    @property
    def citations(self) -> Sequence[CitationBody]:
        """Each mark, resolved and checked."""
        return self.body.citations

    @property
    def sources(self) -> Sequence[SourceBody]:
        """The passages that the answer could draw on, best first."""
        return self.body.sources

    @property
    def decision(self) -> str:
        """can_proceed, uncertain or out_of_scope."""
        return self.body.decision

    @property
    def kind(self) -> str:
        """answer, places or nothing."""
        return self.body.kind

    @property
    def places(self) -> Sequence[PlaceBody]:
        """Where the answer may stand, best first, if none is certain."""
        return self.body.places

    @property
    def data(self) -> Any:
        """The answer as JSON of the schema that was given, null where nothing supports a value; None: without a schema.

        `Model.model_validate(answer.data)` makes an object of it.
        """
        return self.body.data

    @property
    def values(self) -> Sequence[ValueBody]:
        """Each value of `data` with its status and citation."""
        return self.body.values

    @property
    def confidence(self) -> float:
        """0 to 1."""
        return self.body.confidence

    @property
    def conversation_id(self) -> UUID | None:
        """The conversation that keeps the answer; None: it is not kept."""
        return self.body.conversation_id if isinstance(self.body, KeptAnswerBody) else None

    def __repr__(self) -> str:
        lines = [f"Q: {self.question}", *map(describe_step, self.body.steps), f"A: {self.text.strip()}", ""]
        for number, place in enumerate(self.places[SHOWN_PLACES:], start=SHOWN_PLACES + 1):  # the first are in the text
            lines.append(f"  {number}. {place.place}: “{place.text}”")
        for citation in self.citations:
            quotes = "".join(f": {one.place}: “{one.quote}”" for one in quoted_words(citation))
            lines.append(f"  [C{citation.mark}] {describe_proof(citation)}{quotes}")
        lines.append(f"  {self.decision}, confidence {self.confidence:.2f}")
        return "\n".join([*lines, *(f"  - {reason.text}" for reason in self.body.reasons)])

    def _repr_html_(self) -> str:
        return answer_html(self.question, self.body)


@dataclass(frozen=True, kw_only=True, repr=False)
class Passages(Items[PassageBody]):
    """Passages down to the last one above the threshold, best first."""

    question: str
    language: str  # of the question, ISO 639-1

    def __repr__(self) -> str:
        lines = [f"{len(self)} passage(s) for: {self.question}"]
        for number, passage in enumerate(self.items, start=1):
            scores = ", ".join(f"{name} {value:.2f}" for name, value in score_names(passage.scores))
            text = " ".join(passage.text.split())
            lines += [f"{number}. {passage.place} ({scores})", f"   {text[:_SHOWN]}{'…' if len(text) > _SHOWN else ''}"]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return passages_html(self.question, self.language, self.items)


class ListedDocument(DocumentBody, kw_only=True, frozen=True, rename="camel"):
    """A document with the state of its latest upload, and the name of its corpus."""

    corpus: str


@dataclass(frozen=True, kw_only=True, repr=False)
class Documents(Items[ListedDocument]):
    """Stored documents, by corpus and name."""

    def __repr__(self) -> str:
        return repr(self._table())

    def _repr_html_(self) -> str:
        return self._table()._repr_html_()

    def _table(self) -> Table:
        rows = [(d.corpus, d.name, d.language or "", d.status, d.chunk_count, d.size_bytes) for d in self.items]
        return table(("corpus", "name", "language", "status", "chunks", "bytes"), rows)


@dataclass(frozen=True, kw_only=True)
class IngestedFile:
    """The outcome of ingesting a file."""

    name: str  # in the corpus
    outcome: str  # added, replaced, unchanged, failed, or skipped: no document
    chunk_count: int = 0
    document_id: UUID | None = None
    reason: str = ""  # why it failed or was skipped
    warnings: Sequence[str] = ()  # what of the file is not in the text


@dataclass(frozen=True, kw_only=True, repr=False)
class IngestReport(Items[IngestedFile]):
    """The outcomes of one call's files, in their order."""

    @property
    def failed(self) -> tuple[IngestedFile, ...]:
        return tuple(item for item in self.items if item.outcome == "failed")

    def __repr__(self) -> str:
        lines: list[str] = []
        for item in self.items:
            detail = f": {item.reason}" if item.reason else f" ({item.chunk_count} chunks)"
            lines += [f"{item.outcome:9} {item.name}{detail}", *(f"          {warning}" for warning in item.warnings)]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = [
            (item.name, item.outcome, item.chunk_count, " ".join(filter(None, (item.reason, *item.warnings))))
            for item in self.items
        ]
        return table_html(("file", "outcome", "chunks", ""), rows)


@dataclass(frozen=True, kw_only=True, repr=False)
class ImportReport:
    """What an import of a corpus brought."""

    body: ImportBody  # everything, as the API sends it

    def __repr__(self) -> str:
        return "\n".join(_UNSHOWN.sub("\ufffd", line) for line in self._lines())

    def _lines(self) -> Iterator[str]:
        body, corpus = self.body, self.body.corpus
        yield (
            f"{body.documents} documents ({body.chunks} chunks) were imported into the {corpus.kind} corpus"
            f" {corpus.name!r} ({corpus.id})."
        )
        if body.embedded_again:
            yield "The file has the vectors of another embedding model: all texts were embedded again."
        if body.waiting:
            yield f"{body.waiting} of them were not indexed yet; a running `rag-service serve` or `worker` does it."
        if body.stale:
            yield f"{body.stale} of them were made with other settings; `rag-service reingest` updates them."
        if corpus.kind == "global":
            readers = "every user" if corpus.shared else "administrators"
            yield f"It can be read by {', the group '.join((readers, *corpus.groups))}."
        for source in body.sources:
            yield f"Source of the exported corpus, to be added again: {source.target}"


@dataclass(frozen=True, kw_only=True, repr=False)
class Table:
    """Rows under a head, for the last expression of a notebook cell."""

    head: Sequence[str]
    rows: Sequence[Sequence[object]]

    def __repr__(self) -> str:
        lines = [self.head, *([_as_text(value) for value in row] for row in self.rows)]
        widths = [max(len(line[column]) for line in lines) for column in range(len(self.head))]
        return "\n".join(
            "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip() for line in lines
        )

    def _repr_html_(self) -> str:
        return table_html(self.head, self.rows)


def _as_text(value: object) -> str:
    return f"{value:.3f}" if isinstance(value, float) else _UNSHOWN.sub("\ufffd", str(value))


def table(head: Sequence[str], rows: Iterable[Sequence[object] | Mapping[str, object]]) -> Table:
    """A table for the last expression of a notebook cell: column names, and rows of values, or `records`.

    Of records only the named columns are shown, None as nothing. Raises KeyError for a name that they do not have.
    """
    return Table(head=head, rows=[_read_row(head, row) for row in rows])


def _read_row(head: Sequence[str], row: Sequence[object] | Mapping[str, object]) -> Sequence[object]:
    if isinstance(row, Mapping):
        return tuple("" if row[name] is None else row[name] for name in head)
    return tuple(row)
