"""Bodies of the advisor's requests and replies. Names are camelCase in JSON."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct

from rag_service.api.http.schemas import (
    CitationBody,
    ConfidenceBody,
    ContextBody,
    Fields,
    GuardrailsBody,
    Ids,
    ReasonBody,
    Text,
)

MAX_COLLECTED = 200  # top-level entries of the collected data


class RequiredDataRequest(Struct, kw_only=True, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A case, and which articles may govern it."""

    inquiry: Annotated[
        str, Meta(description="Description of the case in the user's words; at most RAG_QUERY_MAX_CHARS characters.")
    ]
    record_keeper: Annotated[Text | None, Meta(description="Filter field record_keeper.")] = None
    plan_type: Annotated[Text | None, Meta(description="Filter field plan_type.")] = None
    topic: Annotated[Text | None, Meta(description="Filter field topic.")] = None
    fields: Annotated[Fields, Meta(description="Other filter fields declared by the index, by name.")] = {}
    index: Annotated[Text | None, Meta(description="Index definition; required if several support the advisor.")] = None
    corpus_ids: Annotated[Ids, Meta(description="Only these corpora; all must exist.")] = []


class GenerateResponseRequest(
    RequiredDataRequest, kw_only=True, frozen=True, rename="camel", forbid_unknown_fields=True
):
    """A case with what is known about it."""

    collected_data: Annotated[
        dict[str, Any],
        Meta(
            description="Values by field name; groups such as participantData can be nested.", max_length=MAX_COLLECTED
        ),
    ] = {}
    max_tokens: Annotated[
        int | None, Meta(description="Budget in tokens: 70 % for the context, 30 % for the answer.")
    ] = None


class ArticleBody(Struct, kw_only=True, frozen=True, rename="camel"):
    """The article that governs the case."""

    article_id: Annotated[str | None, Meta(description="Null if no article fits.")]
    confidence: float


class RequiredFieldBody(Struct, kw_only=True, frozen=True, rename="camel"):
    """A data field that the procedure needs."""

    field: str
    description: str
    why_needed: str
    data_type: Annotated[str, Meta(description="text, currency, date, boolean or number.")]
    required: bool


class RequiredFieldsBody(Struct, kw_only=True, frozen=True, rename="camel"):
    participant_data: list[RequiredFieldBody]
    plan_data: list[RequiredFieldBody]


class AdvisorMetadataBody(Struct, kw_only=True, frozen=True, rename="camel"):
    """How the reply was made."""

    token_count: Annotated[int, Meta(description="Tokens of context and answer.")]
    context_tokens: int
    answer_tokens: int
    chunks_used: int
    chunks_left_out: int
    language: str
    model: str
    model_error: Annotated[
        str | None, Meta(description="Error code if the chat model failed and the reply quotes the article instead.")
    ]
    latency_ms: float


class RequiredDataBody(Struct, kw_only=True, frozen=True, rename="camel"):
    """The data that the governing article requires."""

    article_reference: ArticleBody
    required_fields: RequiredFieldsBody
    decision: Annotated[str, Meta(description="can_proceed, uncertain or out_of_scope.")]
    reasons: Annotated[list[ReasonBody], Meta(description="Why it is not can_proceed; else empty.")]
    confidence_parts: ConfidenceBody
    metadata: AdvisorMetadataBody


class SectionBody(Struct, kw_only=True, frozen=True, rename="camel"):
    """A topic of the response; statements carry the marks of their passages."""

    topic: str
    answer_components: list[str]
    steps: list[str]
    warnings: list[str]


class ResponseSectionsBody(Struct, kw_only=True, frozen=True, rename="camel"):
    sections: list[SectionBody]


class StatementBody(Struct, kw_only=True, frozen=True, rename="camel"):
    """A place in the response: `sections[section].<part>[item]`."""

    section: int
    part: Annotated[str, Meta(description="answerComponents, steps or warnings.")]
    item: int


class StatementCitationBody(Struct, kw_only=True, frozen=True, rename="camel"):
    """A citation of one statement; its sentence counts in the statement's characters."""

    statement: StatementBody
    citation: CitationBody


class GenerateResponseBody(Struct, kw_only=True, frozen=True, rename="camel"):
    """A structured response with its proof."""

    decision: Annotated[str, Meta(description="can_proceed, uncertain or out_of_scope.")]
    reasons: Annotated[list[ReasonBody], Meta(description="Why it is not can_proceed; else empty.")]
    confidence: float
    confidence_parts: ConfidenceBody
    article_reference: ArticleBody
    response: ResponseSectionsBody
    missing_fields: list[str]
    citations: list[StatementCitationBody]
    flagged: Annotated[list[StatementBody], Meta(description="Statements without a verified citation.")]
    withheld_statements: int
    context_used: list[ContextBody]
    guardrails: GuardrailsBody
    metadata: AdvisorMetadataBody
