"""Bodies of requests and replies. Names are camelCase in JSON."""

from __future__ import annotations

from datetime import date, datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from msgspec import Meta, Struct

MAX_IDS = 1000
MAX_TAGS = 50
MAX_MESSAGES = 2000  # of a conversation: 1,000 questions with their answers
MAX_CHARS = 1000  # of a filter value, a tag or a title

Text = Annotated[str, Meta(max_length=MAX_CHARS)]
LongText = Annotated[str, Meta(max_length=20_000)]
Name = Annotated[str, Meta(max_length=200)]
Tags = Annotated[list[Text], Meta(max_length=MAX_TAGS)]
Ids = Annotated[list[UUID], Meta(max_length=MAX_IDS)]
Fields = Annotated[dict[Text, Text], Meta(max_length=MAX_TAGS)]


# -- requests


TopK = Annotated[int | None, Meta(description="Maximum number of passages, 1 to RAG_TOPK_MAX.")]
Threshold = Annotated[
    float | None,
    Meta(
        description="Relevance that every passage must reach, 0 to 1. Default: the passages end with the last one that "
        "reaches `RAG_OUT_OF_SCOPE_THRESHOLD`."
    ),
]
SourceFilter = Annotated[Text | None, Meta(description="Only documents from this source.")]
TagFilter = Annotated[Tags, Meta(description="Only documents with all of these tags.")]
FileFilter = Annotated[Text | None, Meta(description="Only the file with this name.")]
DocumentFilter = Annotated[Ids, Meta(description="Only these documents; all must exist. Empty: all.")]
CorpusFilter = Annotated[Ids, Meta(description="Only these corpora; all must exist. Empty: all.")]
FieldFilter = Annotated[Fields, Meta(description="Exact values of filter fields that the index declares.")]


class SearchRequest(Struct, kw_only=True, frozen=True, rename="camel", forbid_unknown_fields=True):
    """What to search for, and where."""

    query: Annotated[str, Meta(description="The question, in any language; at most RAG_QUERY_MAX_CHARS characters.")]
    top_k: TopK = None
    similarity_threshold: Threshold = None
    source: SourceFilter = None
    tags: TagFilter = []
    file_name: FileFilter = None
    document_ids: DocumentFilter = []
    corpus_ids: CorpusFilter = []
    fields: FieldFilter = {}
    filter: Annotated[
        dict[str, Any] | None,
        Meta(
            description="Conditions on declared filter fields and on title, fileName, source, tags, language, "
            "mediaType, territory, sizeBytes, createdAt, updatedAt, expiresAt. A condition is "
            '{"field": "year", "operator": ">=", "value": 2023}; operators: ==, !=, >, >=, <, <=, in, nin, any, all, '
            'contains, text_match, text_match_insensitive, is_empty. {"and": […]}, {"or": […]} and {"not": […]} '
            "combine conditions; not: none of them holds. At most 50 conditions with 1,000 values "
            "together, 5 levels deep."
        ),
    ] = None


class MessageRequest(Struct, kw_only=True, frozen=True, rename="camel", forbid_unknown_fields=True):
    role: Literal["user", "assistant"]
    content: LongText


Replaces = Annotated[
    UUID | None,
    Meta(
        description="`answerId` of an answer in the conversation: once the new answer is there, it takes the place of "
        "that answer, its question and everything after them."
    ),
]


class AnswerRequest(SearchRequest, kw_only=True, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A question to answer."""

    messages: Annotated[
        list[MessageRequest],
        Meta(
            max_length=MAX_MESSAGES,
            description="Earlier messages, oldest first; of many the last 200 count. A follow-up question is rewritten "
            "as a standalone one, or without a chat model joined to the questions that it needs; `searchedFor` has the "
            "result.",
        ),
    ] = []
    stream: Annotated[bool, Meta(description="Reply with an event stream.")] = False
    keep: Annotated[
        bool, Meta(description="Store question and answer in a new conversation; the answer has its `conversationId`.")
    ] = False
    conversation_id: Annotated[
        UUID | None, Meta(description="Stored conversation to continue; without `messages`, its history is used.")
    ] = None
    replaces: Replaces = None
    schema: Annotated[
        dict[str, Any] | None,
        Meta(
            description="JSON schema of an object: the answer is JSON of it, in `data`, and each value is proved, in "
            "`values`. Needs a chat model. At most 100 fields, 6 levels, 50,000 characters."
        ),
    ] = None


class CheckedPassage(Struct, kw_only=True, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A passage to check against: a text, or a stored one by its id."""

    text: Annotated[str, Meta(max_length=50_000)] | None = None
    title: Annotated[Text, Meta(description="Of the document that the text is from; its words are context.")] = ""
    chunk_id: Annotated[Text | None, Meta(description="`chunkId` of a source, passage or citation.")] = None


class CheckRequest(Struct, kw_only=True, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A text and what it is to be checked against."""

    text: Annotated[str, Meta(max_length=200_000, description="With or without marks; [C1] names the first passage.")]
    passages: Annotated[list[CheckedPassage], Meta(min_length=1, max_length=200)]
    question: Annotated[
        str, Meta(max_length=4000, description="That the text answers; a judge that can tell says whether it does.")
    ] = ""
    language: Annotated[str | None, Meta(description="ISO 639-1 of the text; null: it is detected.")] = None


class CheckTextRequest(CheckRequest, kw_only=True, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A text to check, and how the verdicts are to come."""

    stream: Annotated[bool, Meta(description="Reply with an event stream.")] = False
    background: Annotated[
        bool, Meta(description="Reply at once with an `id`, whose state and result `GET /api/v1/check/{id}` tells.")
    ] = False


class IngestRequest(Struct, kw_only=True, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A text to store as a document of the default corpus."""

    text: Annotated[str, Meta(description="The document's text.")]
    title: Text | None = None
    source: Annotated[Text | None, Meta(description="Source of the text.")] = None
    tags: Tags = []
    metadata: dict[str, Any] = {}
    file_name: Annotated[
        Text | None, Meta(description="The extension determines the format; a document with the same name is replaced.")
    ] = None


# -- what replies are made of


class LocationBody(Struct, kw_only=True, frozen=True, rename="camel"):
    """A place in the original document; fields that do not apply are null or empty. Numbers begin at 1."""

    page: int | None
    last_page: Annotated[
        int | None, Meta(description="Page on which a passage or quote ends, if it runs over a page break.")
    ]
    headings: list[str]
    sheet: str | None
    cell: str | None
    row: int | None
    paragraph: int | None
    slide: int | None
    part: Annotated[str | None, Meta(description="Notes, a footnote, an attachment, or a file of an archive.")]
    path: Annotated[str | None, Meta(description="Path in a JSON file.")]
    time: Annotated[str | None, Meta(description="Time in subtitles, hours:minutes:seconds.")]
    boxes: Annotated[
        list[tuple[int, int, int, int]],
        Meta(description="Around the words of a quote: left, top, right and bottom, in thousandths of the page."),
    ]


class ScoresBody(Struct, kw_only=True, frozen=True, rename="camel"):
    """The parts of a score; null where the keyword or the vector search did not run."""

    relevance: Annotated[float, Meta(description="Calibrated relevance, 0 to 1, to which similarityThreshold applies.")]
    dense: Annotated[float | None, Meta(description="Cosine similarity.")]
    bm25: Annotated[float | None, Meta(description="Okapi BM25, 0 or more.")]
    coverage: Annotated[
        float | None,
        Meta(description="Share of the question covered by the passage: BM25 without length normalisation."),
    ]
    fused: Annotated[float | None, Meta(description="Weighted sum that ranks the candidates.")]
    rerank: Annotated[float | None, Meta(description="Score from the reranker, 0 to 1.")]


class SourceBody(Struct, kw_only=True, frozen=True, rename="camel"):
    """A passage that the answer could use."""

    document_id: UUID
    title: str
    chunk_index: int
    score: Annotated[float, Meta(description="Calibrated relevance, 0 to 1.")]
    source: str | None
    tags: list[str]
    chunk_id: str
    file_name: str | None
    location: LocationBody | None
    place: Annotated[str, Meta(description='Readable, e.g. "rapport.pdf, page 3".')]
    language: Annotated[str | None, Meta(description="Of the document, ISO 639-1; null if it cannot be told.")]


class RelatedBody(SourceBody, kw_only=True, frozen=True, rename="camel"):
    """A passage close to the question but not relevant enough to answer it."""

    text: str


class PassageBody(RelatedBody, kw_only=True, frozen=True, rename="camel"):
    """A retrieved passage."""

    corpus_id: UUID
    scores: ScoresBody
    start: Annotated[int, Meta(description="First character in the document's stored text.")]
    end: int
    content_hash: str
    fields: Annotated[dict[str, Any], Meta(description="Filter fields that the index declares.")] = {}
    metadata: Annotated[
        dict[str, Any],
        Meta(description="The fields, all other metadata of the document, and what transformations added."),
    ]
    dated: Annotated[date | None, Meta(description="Since when the document holds, or its day, as its text tells.")] = (
        None
    )
    updated_at: Annotated[datetime | None, Meta(description="When this version of the document was stored.")] = None


class SearchBody(Struct, kw_only=True, frozen=True, rename="camel"):
    """Passages down to the last one above the threshold, best first."""

    passages: list[PassageBody]
    language: Annotated[str, Meta(description="Language of the question, ISO 639-1.")]
    latency_ms: float


class ContextBody(Struct, kw_only=True, frozen=True, rename="camel"):
    """A passage that was put before the model."""

    mark: Annotated[int, Meta(description="The number n of the mark [Cn].")]
    document_id: UUID
    chunk_index: int
    snippet: str
    from_turn: Annotated[
        int | None, Meta(description="Number of the earlier answer that cited it, from 1; null if it was found now.")
    ] = None


class EvidenceBody(Struct, kw_only=True, frozen=True, rename="camel"):
    """Words of a document, exactly where they stand."""

    quote: str
    start: Annotated[int | None, Meta(description="First character in the document's stored text.")]
    end: int | None
    location: LocationBody | None
    place: str | None


class AgainstBody(Struct, kw_only=True, frozen=True, rename="camel"):
    """Words of a document that contradict a sentence."""

    title: str
    quote: str


Missing = Annotated[
    str | None,
    Meta(
        description="If unchecked, a figure of the sentence that stands in nothing it cites; if misattributed or "
        "not_found, words copied into the mark that do not stand in its passage, cut at 200 characters."
    ),
]
Against = Annotated[
    AgainstBody | None, Meta(description="If contradicted, the words that say otherwise; otherwise null.")
]


class CitationBody(Struct, kw_only=True, frozen=True, rename="camel"):
    """A mark in the answer, resolved and checked. Place and quote are null when nothing supports it."""

    mark: int
    status: Annotated[str, Meta(description="verified, unchecked, contradicted, misattributed or not_found.")]
    method: Annotated[
        str | None, Meta(description="How it was verified: quote, judge or computed; null if it was not.")
    ]
    reason: Annotated[str | None, Meta(description="Why it was not verified, in a sentence.")]
    formula: Annotated[str | None, Meta(description="Formula of a computed figure, such as `24 + 60 = 84`.")]
    judge: Annotated[str | None, Meta(description="Name of the judge if the method is judge, otherwise null.")]
    quote: str | None
    document_id: UUID | None
    title: str | None
    content_hash: str | None
    chunk_id: str | None
    start: Annotated[int | None, Meta(description="First character in the document's stored text.")]
    end: int | None
    location: LocationBody | None
    place: str | None
    support: float
    sentence_start: Annotated[int, Meta(description="Start of the marked sentence in the answer, in characters.")]
    sentence_end: int
    evidence: Annotated[
        list[EvidenceBody],
        Meta(
            description="All words of the passage that the sentence rests on, the quote first; empty without a quote."
        ),
    ] = []
    missing: Missing = None
    against: Against = None


class ValueBody(Struct, kw_only=True, frozen=True, rename="camel"):
    """A value of an answer as JSON, with its proof."""

    pointer: Annotated[str, Meta(description="Its place in `data` (RFC 6901), such as `/parties/0/name`.")]
    value: Annotated[
        Any, Meta(description="As the model gave it, also where `data` has null because nothing supports it.")
    ]
    status: Annotated[
        str,
        Meta(
            description="verified, unchecked, contradicted, misattributed, not_found, or missing: the model found none."
        ),
    ]
    reason: Annotated[str | None, Meta(description="Why it is not verified, in a sentence.")]
    citation: Annotated[CitationBody | None, Meta(description="The words that it stands in, with their place.")]


class ConfidenceBody(Struct, kw_only=True, frozen=True, rename="camel"):
    """What the confidence is made of."""

    mean_relevance: float
    mean_rerank: float | None
    critical_boost: bool


class FlaggedBody(Struct, kw_only=True, frozen=True, rename="camel"):
    """A sentence of the answer that no verified citation proves."""

    start: Annotated[int, Meta(description="First character in the answer.")]
    end: int


class GuardrailCheckBody(Struct, kw_only=True, frozen=True, rename="camel"):
    """A rule of the knowledge base, and where the generated text says what it names."""

    kind: Annotated[str, Meta(description="never_say or always_mention.")]
    phrase: str
    passed: bool
    rule: Annotated[str, Meta(description="The rule as worded in the document.")]
    document_id: UUID
    chunk_id: str
    start: Annotated[int, Meta(description="The rule's first character in the document's stored text.")]
    end: int
    location: LocationBody | None
    found_in: Annotated[str | None, Meta(description="Part of the generated text that contains it, or null.")]
    found_start: Annotated[int | None, Meta(description="Position in that part, in characters.")]
    found_end: int | None


class GuardrailsBody(Struct, kw_only=True, frozen=True, rename="camel"):
    """What the knowledge base forbids to say or asks to mention, checked by code."""

    passed: bool = True
    checks: list[GuardrailCheckBody] = []
    violations: Annotated[list[GuardrailCheckBody], Meta(description="The checks that failed.")] = []


class StepBody(Struct, kw_only=True, frozen=True, rename="camel"):
    """A tool that the chat model called while it answered."""

    number: int
    tool: Annotated[str, Meta(description="search, read, compute, or unknown.")]
    asked: Annotated[str, Meta(description="What was searched for, read or computed.")]
    found: Annotated[int, Meta(description="Number of passages that it added.")]
    failed: Annotated[bool, Meta(description="The call was wrong, or the tool could not work.")]


class ModelCallBody(Struct, kw_only=True, frozen=True, rename="camel"):
    """A call of a chat model."""

    purpose: Annotated[str, Meta(description="rewrite, rerank, answer or judge.")]
    first_token_ms: Annotated[float | None, Meta(description="Until the first token; null: none came.")]
    total_ms: Annotated[float, Meta(description="Until the end, or until it was left or failed.")]


class TimingsBody(Struct, kw_only=True, frozen=True, rename="camel"):
    """What an answer took, in milliseconds."""

    retrieval_ms: float = 0.0
    model_calls: Annotated[list[ModelCallBody], Meta(description="In the order in which they ended.")] = []


class ReasonBody(Struct, kw_only=True, frozen=True, rename="camel"):
    """Why an answer is not one that can proceed."""

    code: Annotated[str, Meta(description="Stable, such as low_relevance.")]
    text: Annotated[str, Meta(description="A sentence in the language of the answer.")]


class MarkedBody(Struct, kw_only=True, frozen=True, rename="camel"):
    """A word of the question in the text of a place."""

    start: Annotated[int, Meta(description="First character.")]
    end: int


class PlaceBody(Struct, kw_only=True, frozen=True, rename="camel"):
    """A place where the answer may stand. Its words are quoted; that they answer is not claimed."""

    document_id: UUID
    chunk_id: Annotated[str | None, Meta(description="Of its passage; null if no passage holds these cells.")]
    content_hash: Annotated[str, Meta(description="SHA-256 of the original file.")]
    title: str
    file_name: str | None
    place: Annotated[str, Meta(description="File and place, for people.")]
    location: LocationBody | None
    text: Annotated[
        str,
        Meta(
            description="At most 45 words of whole sentences, a row with the names of its columns, or what was read "
            "from a table. `…` stands for what is left out."
        ),
    ]
    marked: Annotated[list[MarkedBody], Meta(description="The words of the question in the text.")]
    start: Annotated[int | None, Meta(description="First character in the document's stored text.")]
    end: int | None
    language: Annotated[str | None, Meta(description="Of the document, ISO 639-1; null if it cannot be told.")]
    formula: Annotated[str | None, Meta(description="How the text was computed from a table; null: it is quoted.")]
    part: Annotated[
        str | None, Meta(description="The part of the question that it was found for, if that asks for several things.")
    ]


class AnswerBody(Struct, kw_only=True, frozen=True, rename="camel"):
    """An answer with its proof."""

    answer_id: UUID
    answer: str
    decision: Annotated[str, Meta(description="can_proceed, uncertain or out_of_scope.")]
    reasons: Annotated[
        list[ReasonBody], Meta(description="Why it is not can_proceed, what weighs most first; else empty.")
    ]
    confidence: float
    confidence_parts: ConfidenceBody
    sources: list[SourceBody]
    context_used: list[ContextBody]
    citations: list[CitationBody]
    unmarked_sentences: int
    withheld_sentences: int
    flagged: Annotated[list[FlaggedBody], Meta(description="Sentences without a verified citation.")]
    guardrails: GuardrailsBody
    language: str
    model: str
    latency_ms: float
    timings: TimingsBody
    steps: Annotated[list[StepBody], Meta(description="Tools that the chat model called, in order.")]
    prompt_tokens: int
    completion_tokens: int
    model_error: Annotated[
        str | None, Meta(description="Error code if the chat model failed and the answer quotes passages instead.")
    ] = None
    answers_question: Annotated[
        str | None,
        Meta(
            description="Whether the answer answers the question, as the judge says: yes, partly, or other (it tells"
            " something else); null if none was asked or it cannot tell."
        ),
    ] = None
    incomplete: Annotated[bool, Meta(description="The chat model did not finish the answer; the answer says so.")] = (
        False
    )
    finish_reason: Annotated[
        str,
        Meta(
            description="`stop`; if incomplete, `length` (the chat model reached its length limit or only repeated"
            " itself) or `content_filter` (its server's filter stopped it)."
        ),
    ] = "stop"
    recorded: Annotated[
        bool,
        Meta(
            description="false: the database failed when the record of the answer was to be stored. It cannot be looked"
            " up or rated."
        ),
    ] = True
    searched_for: Annotated[
        str | None,
        Meta(
            description="A follow-up question as searched for: rewritten by the chat model, or after the questions "
            "that it needs, a line each. null: searched for as asked."
        ),
    ] = None
    related: Annotated[
        list[RelatedBody],
        Meta(description="If nothing was found, at most three of the nearest passages. They are not proof."),
    ] = []
    follow_ups: Annotated[
        list[str],
        Meta(description="At most three FAQ entries that were found and are not shown in the answer."),
    ] = []
    kind: Annotated[
        str,
        Meta(
            description="`answer`; `places`: without a chat model no answer is certain, and `places` are what comes"
            " nearest; `nothing`: the documents do not answer it."
        ),
    ] = "answer"
    places: Annotated[
        list[PlaceBody],
        Meta(description="At most six, best first; show three. `answer` has these three as text, without citations."),
    ] = []
    data: Annotated[
        Any, Meta(description="With `schema`: the JSON. What nothing supports is null; null without a schema.")
    ] = None
    values: Annotated[
        list[ValueBody], Meta(description="With `schema`: each of its values, those that are null in `data`, too.")
    ] = []


class SentenceBody(Struct, kw_only=True, frozen=True, rename="camel"):
    """A sentence that states something."""

    start: Annotated[int, Meta(description="First character in the text.")]
    end: int
    text: str
    status: Annotated[
        str,
        Meta(
            description="verified, unchecked, contradicted, misattributed or not_found: the best of its citations; of "
            "several claims in one sentence, the worst."
        ),
    ]
    citations: Annotated[list[int], Meta(description="Positions in `citations`, from 0; empty if nothing was found.")]


class CheckBody(Struct, kw_only=True, frozen=True, rename="camel"):
    """What the check makes of a text."""

    decision: Annotated[
        str, Meta(description="can_proceed (every sentence is proved), uncertain, or out_of_scope (it states nothing).")
    ]
    reasons: Annotated[list[ReasonBody], Meta(description="Why it is not can_proceed; else empty.")]
    sentences: list[SentenceBody]
    citations: Annotated[
        list[CitationBody],
        Meta(description="`mark` counts the passages from 1; `start` and `end` are places in a given text."),
    ]
    flagged: Annotated[list[FlaggedBody], Meta(description="Sentences that are not proved.")]
    language: str
    latency_ms: float


class CheckJobBody(Struct, kw_only=True, frozen=True, rename="camel"):
    """A check in the background. Only the user who asked for it can read it, for an hour after its end."""

    id: UUID
    state: Annotated[
        Literal["waiting", "running", "done", "failed"], Meta(description="`done` and `failed` are final.")
    ]
    sentences: Annotated[int, Meta(description="Checked so far.")]
    result: Annotated[CheckBody | None, Meta(description="Once it is done.")] = None
    error: Annotated[dict[str, Any] | None, Meta(description="A problem, if it failed.")] = None


class IngestBody(Struct, kw_only=True, frozen=True, rename="camel"):
    """What became of a document."""

    document_id: UUID
    outcome: Annotated[str, Meta(description="added, replaced or unchanged.")]
    chunk_count: int
    warnings: Annotated[list[str], Meta(description="Content of the file that is missing from the text.")] = []


# -- data of streamed events; `citation` carries CitationBody, `final` AnswerBody, `error` a problem


class SourcesData(Struct, kw_only=True, frozen=True, rename="camel"):
    sources: list[SourceBody]
    context_used: list[ContextBody]


class StepData(StepBody, kw_only=True, frozen=True, rename="camel"):
    context_used: Annotated[list[ContextBody], Meta(description="The passages that it added.")]


class SentenceData(Struct, kw_only=True, frozen=True, rename="camel"):
    """A sentence of a checked text."""

    start: Annotated[int, Meta(description="First character in the text.")]
    end: int
    text: str
    status: str
    citations: list[CitationBody]


class CheckDone(Struct, frozen=True):
    """The end of a streamed check."""


class DeltaData(Struct, kw_only=True, frozen=True, omit_defaults=True):
    text: str
    restart: Annotated[
        bool, Meta(description="The answer begins here: discard all text and citations received so far.")
    ] = False


class DoneData(Struct, kw_only=True, frozen=True, rename="camel"):
    answer_id: UUID
