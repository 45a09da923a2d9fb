"""Requests and responses of the advisor, and the JSON form of a model's reply."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, TypeVar
from uuid import UUID

import msgspec
from msgspec import Meta, Struct

from rag_service.domain import Citation, Confidence, Decision, GuardrailCheck, Hit, Reason
from rag_service.errors import ModelOutputError

DataType = Literal["text", "currency", "date", "boolean", "number"]
Part = Literal["answerComponents", "steps", "warnings"]

_Struct = TypeVar("_Struct", bound=Struct)


# -- what is asked


@dataclass(frozen=True, kw_only=True)
class Inquiry:
    """A case that somebody asks the advisor about."""

    text: str  # in the asker's words, not blank
    fields: Mapping[str, str] = field(default_factory=dict)  # declared filter fields, equal to
    corpus_ids: tuple[UUID, ...] = ()  # empty: every corpus with a definition for advisors
    index: str | None = None  # name of an index definition; needed when corpora of several are in reach


@dataclass(frozen=True, kw_only=True)
class ResponseRequest:
    """An inquiry with what is known about the case."""

    inquiry: Inquiry
    collected: Mapping[str, Any] = field(default_factory=dict)  # field → value; groups may nest
    max_tokens: int | None = None  # of context and answer together


# -- what is answered


@dataclass(frozen=True, kw_only=True)
class RequiredField:
    """One datum that a procedure needs."""

    field: str
    group: Literal["participant", "plan"]
    description: str
    why_needed: str
    data_type: DataType
    required: bool


@dataclass(frozen=True, kw_only=True)
class _Reply:
    """What every reply of the advisor says; the defaults are those of a reply for which no article was found."""

    decision: Decision
    reasons: tuple[Reason, ...] = ()  # why it is not `can_proceed`, what weighs most first
    confidence: Confidence
    language: str  # of the inquiry, ISO 639-1
    model: str
    model_error: str | None = None  # code of the error of that model: quotes take its place
    article_id: str | None = None
    shown: tuple[Hit, ...] = ()  # the passages used, [C1] first
    left_out: tuple[str, ...] = ()  # ids of chunks that did not fit the budget
    context_tokens: int = 0


@dataclass(frozen=True, kw_only=True)
class RequiredData(_Reply):
    """The data that the article for an inquiry asks for."""

    fields: tuple[RequiredField, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Component:
    """One statement of a response."""

    text: str  # with its marks
    citations: tuple[Citation, ...] = ()  # sentence offsets count in `text`
    flagged: bool = False  # no verified citation proves it


@dataclass(frozen=True, kw_only=True)
class Section:
    """A topic of a response."""

    topic: str
    answer_components: tuple[Component, ...]
    steps: tuple[Component, ...]
    warnings: tuple[Component, ...]

    def parts(self) -> tuple[tuple[Part, tuple[Component, ...]], ...]:
        """Its lists by their names in the API."""
        return ("answerComponents", self.answer_components), ("steps", self.steps), ("warnings", self.warnings)


@dataclass(frozen=True, kw_only=True)
class AdvisorResponse(_Reply):
    """A structured answer with its proof."""

    sections: tuple[Section, ...] = ()
    guardrails: tuple[GuardrailCheck, ...] = ()
    missing: tuple[RequiredField, ...] = ()  # required, and not in the collected data
    answer_tokens: int = 0
    withheld: int = 0  # statements left out because they could not be verified, where that is set


# -- what a model must reply

Short = Annotated[str, Meta(min_length=1, max_length=300)]
Statement = Annotated[str, Meta(min_length=1, max_length=1200)]
Statements = Annotated[list[Statement], Meta(max_length=20)]


class FieldReply(Struct, kw_only=True, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A required field as a model writes it."""

    field: Short
    description: Annotated[str, Meta(max_length=600)]
    why_needed: Annotated[str, Meta(max_length=600)]
    data_type: DataType
    required: bool


class RequiredDataReply(Struct, kw_only=True, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Required fields as a model writes them."""

    participant_data: Annotated[list[FieldReply], Meta(max_length=40)]
    plan_data: Annotated[list[FieldReply], Meta(max_length=40)]

    def fields(self) -> tuple[RequiredField, ...]:
        """The fields of both groups."""
        return (
            *(RequiredField(group="participant", **msgspec.structs.asdict(field)) for field in self.participant_data),
            *(RequiredField(group="plan", **msgspec.structs.asdict(field)) for field in self.plan_data),
        )


class SectionReply(Struct, kw_only=True, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A section as a model writes it; each statement ends with its marks."""

    topic: Short
    answer_components: Statements
    steps: Statements
    warnings: Statements

    def parts(self) -> tuple[tuple[Part, list[str]], ...]:
        """Its lists by their names in the API."""
        return ("answerComponents", self.answer_components), ("steps", self.steps), ("warnings", self.warnings)


class ResponseReply(Struct, kw_only=True, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A response as a model writes it."""

    decision: Literal["can_proceed", "uncertain", "out_of_scope"]
    sections: Annotated[list[SectionReply], Meta(max_length=8)]


def json_schema(kind: type[Struct]) -> dict[str, Any]:
    """The JSON schema of a reply for a model server.

    It has no references, which not every server resolves, and no text lengths, which Ollama turns into a grammar
    with as many repetitions. `read_reply` checks the lengths.
    """
    (root,), components = msgspec.json.schema_components([kind], ref_template="{name}")

    def inline(part: Any) -> Any:
        if not isinstance(part, dict):
            return part
        if "$ref" in part:
            return inline(components[part["$ref"]])
        kept = {
            key: part[key] for key in part.keys() & {"type", "enum", "required", "maxItems", "additionalProperties"}
        }
        if "properties" in part:
            kept["properties"] = {name: inline(value) for name, value in part["properties"].items()}
        if "items" in part:
            kept["items"] = inline(part["items"])
        return kept

    schema: dict[str, Any] = inline(root)
    return schema


def read_reply(text: str, kind: type[_Struct]) -> _Struct:
    """Decode a model's JSON.

    Raises ModelOutputError, without the model's text, if it is no JSON or does not fit the schema.
    """
    try:
        return msgspec.json.decode(text.encode(), type=kind)
    except msgspec.ValidationError as error:
        raise ModelOutputError(f"The reply does not fit the schema: {str(error)[:200]}.") from error
    except msgspec.DecodeError as error:
        raise ModelOutputError("The reply is not complete, valid JSON.") from error
