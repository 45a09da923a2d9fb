"""Values that travel through the service: documents in, chunks stored, hits ranked, answers proved.

Everything here is frozen and keyword-only, knows nothing of the database, the web or a model,
and holds no behaviour beyond what follows from its own fields.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from enum import StrEnum
from functools import lru_cache
from typing import Any, Literal
from uuid import UUID

import msgspec

ENCODING_GUESSED = "encoding_guessed"  # key of a document's metadata: the encoding, if another may be the right one
READER_WARNINGS = "reader_warnings"  # key of a document's metadata: what of its file is not in the text


class Role(StrEnum):
    """What a user may do beyond their own corpora."""

    ADMIN = "admin"  # manages global corpora, agents and users
    USER = "user"  # owns personal corpora, reads global ones through agents


@dataclass(frozen=True, kw_only=True)
class Identity:
    """Who acts. Set on every transaction; PostgreSQL's row-level security reads it."""

    user_id: UUID  # primary key of the user
    role: Role = Role.USER  # for the application's own guards; the database looks it up itself


# The one user of RAG_AUTH=none.
LOCAL_ADMIN = Identity(user_id=UUID("00000000-0000-4000-8000-000000000001"), role=Role.ADMIN)


class CorpusKind(StrEnum):
    GLOBAL = "global"  # managed by admins
    PERSONAL = "personal"  # readable by its owner only


@lru_cache(maxsize=1_000)
def column_letters(number: int) -> str:
    """Spreadsheet name of a 1-based column: 1 is A, 27 is AA."""
    letters = ""
    while number > 0:
        number, rest = divmod(number - 1, 26)
        letters = chr(ord("A") + rest) + letters
    return letters


def column_number(letters: str) -> int:
    """The reverse of `column_letters`, for capital letters."""
    number = 0
    for letter in letters:
        number = number * 26 + ord(letter) - ord("A") + 1
    return number


Box = tuple[int, int, int, int]  # left, top, right, bottom in thousandths of the page


MAIL_HEADER = "header"  # the part of a mail that says who wrote to whom, when and about what


class Location(msgspec.Struct, frozen=True, kw_only=True, gc=False):  # no cycles: a long table has 300,000
    """A place in the original document that a person can open. Numbers are 1-based.

    Fields that do not apply to the format are None or empty: a PDF has pages, a workbook
    has a sheet and cells, a CSV file has rows; Markdown, DOCX, HTML and PDF have headings.
    """

    page: int | None = None  # page of a PDF
    last_page: int | None = None  # on which a passage or quote ends, if it is another one
    headings: tuple[str, ...] = ()  # heading path, outermost first
    sheet: str | None = None  # worksheet name
    cell: str | None = None  # "C12", or a range "A12:F12"
    row: int | None = None  # row of a sheet or a CSV file, header included in the count
    paragraph: int | None = None  # paragraph of a DOCX or text file
    slide: int | None = None  # of a presentation
    part: str | None = None  # "notes", "footnote 3", an attachment or a file of an archive: "offers/prices.xlsx"
    path: str | None = None  # in a JSON file: "orders[2].total"
    time: str | None = None  # of subtitles, from the start: "01:02:03"
    boxes: tuple[Box, ...] = ()  # around the words of a quote, on the page as it is shown


class Span(msgspec.Struct, frozen=True, kw_only=True, array_like=True, gc=False):
    """Characters [start, end) of a text and where they stand in the original.

    A structure of msgspec, as `Location`: each search reads hundreds from JSON.
    """

    start: int
    end: int
    location: Location
    words: str = ""  # where they stand on the page, see `word_boxes`


def write_span(span: Span) -> list[Any]:
    """A span as JSON: [start, end, {the fields of its location that are set}, its words if their places are known]."""
    location = span.location
    fields = {
        "page": location.page, "headings": list(location.headings), "sheet": location.sheet,
        "cell": location.cell, "row": location.row, "paragraph": location.paragraph,
        "slide": location.slide, "part": location.part, "path": location.path, "time": location.time,
        "boxes": location.boxes,
    }  # fmt: skip
    written = [span.start, span.end, {key: value for key, value in fields.items() if value}]
    return [*written, span.words] if span.words else written


def read_spans(stored: Sequence[Any] | None) -> tuple[Span, ...]:
    """The inverse of `write_span` for the spans of a text."""
    return msgspec.convert(stored or (), tuple[Span, ...])


read_spans_json = msgspec.json.Decoder(tuple[Span, ...]).decode  # the same from their JSON


@dataclass(frozen=True, kw_only=True)
class EncodedTable:
    """A typed table as `tables.encoding` writes and reads it."""

    description: bytes
    batches: tuple[bytes, ...]  # of rows, compressed


@dataclass(frozen=True, kw_only=True)
class ParsedDocument:
    """What a parser makes of a file: one stored text, and the place of each part of it.

    `text` is what chunks are cut from and what citation offsets count in. `spans` are sorted by
    `start` and may nest nowhere; a character outside every span has no place of its own.
    """

    text: str
    spans: tuple[Span, ...]
    title: str  # from the document itself, else from its file name
    media_type: str  # detected from the content, e.g. "application/pdf"
    language: str | None = None  # ISO 639-1 when the document declares it
    metadata: Mapping[str, Any] = field(default_factory=dict)  # front matter, document properties
    warnings: tuple[str, ...] = ()  # what of the file is not in the text, in sentences for the uploader
    long_tables: tuple[EncodedTable, ...] = ()  # whose rows are too many for the text


@dataclass(frozen=True, kw_only=True)
class DocumentRef:
    """The document that a chunk belongs to, as far as answers and citations need it."""

    id: UUID
    corpus_id: UUID
    title: str
    file_name: str | None
    source: str | None  # where the document came from, as the uploader wrote it
    tags: tuple[str, ...]
    content_hash: str  # SHA-256 of the original bytes, hex
    updated_at: datetime  # when this version of the content was stored
    language: str | None = None  # ISO 639-1; None: it cannot be told, as in tables of names and figures
    dated: date | None = None  # since when it holds, or of what day it is, as its text tells
    has_tables: bool = False  # whether rows or figures of it are stored, which questions may be computed from


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
        last = location.last_page
        parts.append(f"page {location.page}" if last is None else f"pages {location.page}–{last}")
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


@dataclass(frozen=True, kw_only=True)
class Chunk:
    """A passage: the slice [start, end) of its document's stored text."""

    id: str  # node id in the vector store
    document: DocumentRef
    index: int  # position in the document, from 0
    text: str  # exactly the slice of the stored text
    start: int  # first character in the document's stored text
    end: int  # one past the last character
    spans: tuple[Span, ...] = ()  # places within the chunk, in document offsets
    type: str | None = None  # chunk type declared by the index, e.g. "required_data"
    metadata: Mapping[str, Any] = field(default_factory=dict)  # declared filter fields
    extra: Mapping[str, Any] = field(default_factory=dict)  # other metadata of the document, and of its node

    @property
    def location(self) -> Location | None:
        """Where it begins, with the page on which it ends if that is another one."""
        if not self.spans:
            return None
        first, last = self.spans[0].location, self.spans[-1].location
        if not (first.page and last.page and first.part == last.part and last.page > first.page):
            return first
        return msgspec.structs.replace(first, last_page=last.page)


@dataclass(frozen=True, kw_only=True)
class Scores:
    """How a hit was rated, each figure under its own name; None where that search did not run."""

    relevance: float  # calibrated, 0..1; what similarityThreshold applies to
    dense: float | None = None  # cosine similarity, -1..1
    bm25: float | None = None  # Okapi BM25, 0 and up
    coverage: float | None = None  # share of the question that it holds: BM25 without length, 0..1
    fused: float | None = None  # weighted sum of the searches that ranked the candidates
    rerank: float | None = None  # from the reranker, 0..1


@dataclass(frozen=True, kw_only=True)
class Hit:
    """A retrieved chunk with its scores. Lists of hits are ordered best first."""

    chunk: Chunk
    scores: Scores
    from_turn: int | None = None  # number of the earlier answer, from 1, that cited it; None: it was found now


class Operator(StrEnum):
    """How a condition compares; the names are those of LlamaIndex."""

    EQUAL = "=="
    NOT_EQUAL = "!="
    GREATER = ">"
    GREATER_OR_EQUAL = ">="
    LESS = "<"
    LESS_OR_EQUAL = "<="
    IN = "in"
    NOT_IN = "nin"
    ANY = "any"
    ALL = "all"
    CONTAINS = "contains"
    TEXT_MATCH = "text_match"
    TEXT_MATCH_INSENSITIVE = "text_match_insensitive"
    IS_EMPTY = "is_empty"


@dataclass(frozen=True, kw_only=True)
class Condition:
    """A comparison with a field of a document.

    A field has no value, one, or several (tags). `!=` and `nin` hold where no value equals the given ones, so also
    where there is none; every other operator but `is_empty` holds where some value satisfies it. Numbers are
    compared as numbers, ISO dates as dates, everything else as text.
    """

    field: str
    operator: Operator
    value: str | int | float | bool | tuple[str | int | float | bool, ...] | None = None  # None: is_empty


@dataclass(frozen=True, kw_only=True)
class ConditionGroup:
    """Conditions combined: all of them (`and`), any of them (`or`), or none of them (`not`)."""

    combine: Literal["and", "or", "not"]
    parts: tuple[Condition | ConditionGroup, ...]


FilterTree = Condition | ConditionGroup


@dataclass(frozen=True, kw_only=True)
class Filters:
    """What a search may look at. Empty fields do not restrict."""

    corpus_ids: tuple[UUID, ...] = ()
    document_ids: tuple[UUID, ...] = ()
    file_name: str | None = None
    source: str | None = None
    tags: tuple[str, ...] = ()  # a document must carry all of them
    fields: Mapping[str, str] = field(default_factory=dict)  # declared filter fields, equal to
    chunk_types: tuple[str, ...] = ()  # any of them
    territory: str | None = None  # keeps documents of this territory and those of none
    where: FilterTree | None = None  # conditions on declared filter fields and built-in metadata
    any_field: bool = False  # whether conditions may name fields that no index declares, such as attributes of files
    must_exist: bool = False  # whether an id that the searcher cannot see, or an undeclared field, is an error


@dataclass(frozen=True, kw_only=True)
class Turn:
    """One message of a conversation."""

    role: Literal["user", "assistant"]
    content: str


class CitationStatus(StrEnum):
    VERIFIED = "verified"  # shown by the method: the passage that the mark names says what the sentence says
    UNCHECKED = (
        "unchecked"  # nobody judged the wording, or the judge does not find it supported, or a figure is doubtful
    )
    CONTRADICTED = "contradicted"  # a judge quotes words of a passage that stand against it
    MISATTRIBUTED = "misattributed"  # the evidence stands in another retrieved passage
    NOT_FOUND = "not_found"  # no retrieved passage has the words that are cited, or any of the sentence


class ProofMethod(StrEnum):
    """How a verified citation was shown."""

    QUOTE = "quote"  # its words stand letter by letter in the passage
    JUDGE = "judge"  # a judge says that the passage entails it
    COMPUTED = "computed"  # its figure was recomputed from figures of the passage


@dataclass(frozen=True, kw_only=True)
class CitedWords:
    """Words of a document that show what a sentence says: exactly characters [start, end) of its stored text."""

    quote: str
    start: int
    end: int
    location: Location | None


@dataclass(frozen=True, kw_only=True)
class WordsAgainst:
    """Words of a document that contradict a sentence."""

    title: str  # of the document
    quote: str


@dataclass(frozen=True, kw_only=True)
class Citation:
    """One mark in the answer, resolved and checked.

    `quote` is exactly characters [start, end) of the stored text of the document; for `not_found` all place fields
    are None. Rows of a long table are not in the stored text: `start` and `end` are None then, and the location names
    the cells.
    """

    mark: int  # the number in [Cn] as the model wrote it
    status: CitationStatus
    method: ProofMethod | None = None  # of `verified`, else None
    reason: str | None = None  # why not verified, in a sentence
    missing: str | None = None  # a figure of the sentence, or words copied into the mark, that what it cites lacks
    against: WordsAgainst | None = None  # of `contradicted`, else None
    formula: str | None = None  # how a figure was recomputed: "24 + 60 = 84"
    judge: str | None = None  # who judged, where the method is `judge`
    sentence_start: int  # the marked sentence in the answer text, in characters
    sentence_end: int
    support: float  # how well the quote carries the sentence, 0..1
    chunk_id: str | None = None
    document_id: UUID | None = None
    content_hash: str | None = None
    quote: str | None = None
    start: int | None = None
    end: int | None = None
    location: Location | None = None
    evidence: tuple[CitedWords, ...] = ()  # further words of the same passage that the sentence rests on


@dataclass(frozen=True, kw_only=True)
class GuardrailCheck:
    """A rule of the knowledge base and whether a generated text keeps it."""

    kind: str  # never_say or always_mention
    phrase: str  # what must not, or must, be said
    passed: bool
    rule: str  # the rule as the document words it
    chunk_id: str  # the chunk that holds the rule
    document_id: UUID
    start: int  # the rule in the document's stored text, in characters
    end: int
    location: Location | None
    found_in: str | None = None  # the part of the generated text that says it; None: none does
    found_start: int | None = None  # there, in characters
    found_end: int | None = None


class AnswersQuestion(StrEnum):
    """What a judge says of an answer as a whole, whether it is true or not."""

    YES = "yes"  # it tells all that was asked
    PARTLY = "partly"
    OTHER = "other"  # it tells of another person, place, thing, time or property


class Decision(StrEnum):
    CAN_PROCEED = "can_proceed"
    UNCERTAIN = "uncertain"
    OUT_OF_SCOPE = "out_of_scope"


class ReplyKind(StrEnum):
    ANSWER = "answer"  # written by a model, computed, or quoted and certain
    PLACES = "places"  # the places nearest to the question, none of which is claimed to answer it
    NOTHING = "nothing"  # the documents do not answer it


@dataclass(frozen=True, kw_only=True)
class FoundPlace:
    """A place where the answer may stand."""

    document: DocumentRef
    chunk_id: str | None  # None: no passage holds the cells that a value was read from
    text: str  # a window of whole sentences, or a row with the names of its columns; "…" is left out
    marked: tuple[tuple[int, int], ...]  # characters of the text that are words of the question
    start: int | None  # first character in the document's stored text
    end: int | None
    location: Location | None
    formula: str | None = None  # how its text was computed; None: its words stand there
    part: str | None = None  # of the question, if it asks for several things


@dataclass(frozen=True, kw_only=True)
class Reason:
    """Why an answer is not one that can proceed."""

    code: str  # stable, such as "low_relevance"
    text: str  # a sentence in the language of the answer


@dataclass(frozen=True, kw_only=True)
class Confidence:
    """The sum behind the confidence figure, so that a reader sees why."""

    value: float  # 0..1, two decimals
    mean_relevance: float  # mean of the top three relevances
    mean_rerank: float | None  # mean of the top three rerank scores, if reranked
    critical_boost: bool  # two or more CRITICAL chunks: times 1.1


@dataclass(frozen=True, kw_only=True)
class TokenCount:
    prompt: int
    completion: int
    estimated: bool  # counted by us, not by the model


class Purpose(StrEnum):
    """What a chat model is called for."""

    REWRITE = "rewrite"  # to make a follow-up question standalone
    RERANK = "rerank"
    ANSWER = "answer"
    JUDGE = "judge"
    ADVISOR = "advisor"
    TASK = "task"  # that a chat program sets, such as a title
    CHECK = "check"  # whether it works, and what it can do


@dataclass(frozen=True, kw_only=True)
class ModelCall:
    """A call of a chat model that is over."""

    purpose: Purpose
    first_token_ms: float | None  # from the call; None: nothing came
    total_ms: float  # to the end, or to when it was left or failed


@dataclass(frozen=True, kw_only=True)
class Step:
    """A tool that the model called while it answered."""

    number: int  # in the answer, from 1
    tool: str  # search, read or compute; unknown: there is none of its name
    asked: str  # what was searched for, read or computed
    found: int  # passages that it added
    failed: bool  # the call was wrong, or the tool could not work
    milliseconds: float


@dataclass(frozen=True, kw_only=True)
class ExtractedValue:
    """A value of an answer as JSON, with its proof."""

    pointer: str  # its place in the JSON (RFC 6901): "/parties/0/name"
    value: Any  # as the model gave it; None: none, or one that must not be shown
    status: CitationStatus | None  # None: the model found no value that the schema allows
    reason: str | None = None  # why it is not verified, in a sentence
    citation: Citation | None = None  # of the words that it stands in


@dataclass(frozen=True, kw_only=True)
class Extraction:
    """An answer as JSON of the caller's schema."""

    data: Any  # the JSON; None in the place of what nothing supports
    values: tuple[ExtractedValue, ...]  # of all fields, in the order of the schema


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A complete answer with its proof."""

    id: UUID
    question: str
    language: str  # of the question and the answer, ISO 639-1
    text: str
    sources: tuple[Hit, ...]  # passages down to the last one above the threshold, best first
    shown: tuple[Hit, ...]  # those put before the model, [C1] first
    context_tokens: int = 0  # of these
    citations: tuple[Citation, ...]
    decision: Decision
    reasons: tuple[Reason, ...] = ()  # why it is not `can_proceed`, what weighs most first
    confidence: Confidence
    tokens: TokenCount
    latency_ms: float
    retrieval_ms: float = 0.0  # of the latency
    calls: tuple[ModelCall, ...] = ()  # of chat models, in the order of their ends
    model: str
    steps: tuple[Step, ...] = ()  # in order
    unmarked_sentences: int = 0  # sentences of the answer that carry no mark
    withheld_sentences: int = 0  # removed: not verified, where that is set; or text of the prompt
    flagged: tuple[tuple[int, int], ...] = ()  # sentences of the text that no verified citation proves
    guardrails: tuple[GuardrailCheck, ...] = ()  # what the knowledge base forbids to say, checked
    model_error: str | None = None  # code of the error of the model that was to answer: the text is quotes
    answers_question: AnswersQuestion | None = None  # as the judge says; None: none was asked, or it cannot tell
    incomplete: bool = False  # the model did not finish it: the text says so
    finish_reason: str = "stop"  # or why it did not: "length", "content_filter"
    recorded: bool = True  # false: the store failed when its record was to be kept
    searched_for: str | None = None  # a follow-up with what it needs of the conversation; None: as asked
    related: tuple[Hit, ...] = ()  # the nearest passages where none is above the threshold; they prove nothing
    places: tuple[FoundPlace, ...] = ()  # best first, in place of an answer that is not certain
    extraction: Extraction | None = None  # None: no schema was given

    @property
    def kind(self) -> ReplyKind:
        """Whether it answers, shows places, or says that there is nothing."""
        if self.places:
            return ReplyKind.PLACES
        return ReplyKind.NOTHING if self.decision is Decision.OUT_OF_SCOPE else ReplyKind.ANSWER
