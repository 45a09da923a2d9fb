"""The chat message that brings the passages themselves, for the answerer that quotes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.bridge.pydantic import PrivateAttr

from rag_service.domain import Hit


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What the extractive answerer answers from."""

    question: str
    language: str
    hits: tuple[Hit, ...]  # [C1] first
    weights: Mapping[str, float] = field(default_factory=dict)  # index term → idf in the searched corpora
    equivalents: Mapping[str, int] = field(
        default_factory=dict
    )  # index term → which word of the question it stands for
    refusal: str = ""  # said when nothing fits
    warning: str = ""  # said before an answer, where the question names what no document mentions


class GroundedMessage(ChatMessage):
    """A chat message that also carries the evidence its text was rendered from."""

    _evidence: Evidence | None = PrivateAttr(default=None)

    @classmethod
    def with_evidence(cls, content: str, evidence: Evidence) -> GroundedMessage:
        """A user message."""
        message = cls(role=MessageRole.USER, content=content)
        message._evidence = evidence
        return message

    @property
    def evidence(self) -> Evidence | None:
        return self._evidence
