"""What an answer consists of while it is made. Plain and streamed replies are made of the same events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rag_service.domain import Answer, Citation, Hit


@dataclass(frozen=True, kw_only=True)
class SourcesFound:
    """First event: the passages above the threshold, best first; empty when nothing is relevant."""

    sources: tuple[Hit, ...]
    shown: tuple[Hit, ...]  # those put before the model, [C1] first
    timings_ms: Mapping[str, float]


@dataclass(frozen=True, kw_only=True)
class AnswerDelta:
    """A piece of the answer's text."""

    text: str


@dataclass(frozen=True, kw_only=True)
class CitationChecked:
    """A citation whose sentence is complete."""

    citation: Citation


@dataclass(frozen=True, kw_only=True)
class AnswerComplete:
    """Last event: the whole answer. Its text is the deltas joined."""

    answer: Answer


AnswerEvent = SourcesFound | AnswerDelta | CitationChecked | AnswerComplete
