"""The events of an answer. Plain and streamed replies are built from the same ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rag_service.domain import Answer, Citation, Hit, Step


@dataclass(frozen=True, kw_only=True)
class SourcesFound:
    """First event: the passages down to the last one above the threshold, best first; empty if nothing is relevant."""

    sources: tuple[Hit, ...]
    shown: tuple[Hit, ...]  # those shown to the model, [C1] first
    timings_ms: Mapping[str, float]


@dataclass(frozen=True, kw_only=True)
class StepTaken:
    """The model called a tool; it goes on writing, from the beginning if an `AnswerDelta.restart` follows."""

    step: Step
    shown: tuple[Hit, ...]  # passages that it added
    first_mark: int  # the number of the first of them


@dataclass(frozen=True, kw_only=True)
class AnswerDelta:
    """A piece of the answer's text."""

    text: str
    restart: bool = False  # the text begins here: all text and citations before it are void


@dataclass(frozen=True, kw_only=True)
class CitationChecked:
    """A citation whose sentence is complete."""

    citation: Citation


@dataclass(frozen=True, kw_only=True)
class AnswerComplete:
    """Last event: the complete answer. Its text is all deltas from the last `restart` on, joined."""

    answer: Answer


AnswerEvent = SourcesFound | StepTaken | AnswerDelta | CitationChecked | AnswerComplete
