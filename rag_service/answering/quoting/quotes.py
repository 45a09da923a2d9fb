"""What quotes are chosen from, and what was chosen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rag_service.answering.quoting.places import Excerpt
from rag_service.answering.quoting.sentences import Sentence
from rag_service.domain import Hit
from rag_service.language.normalise import replace_unstorable


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What quotes are chosen from."""

    question: str
    language: str
    hits: tuple[Hit, ...]  # [C1] first
    # Index term → idf in the searched corpora, and → the word of the question that it stands for.
    weights: Mapping[str, float] = field(default_factory=dict)
    equivalents: Mapping[str, int] = field(default_factory=dict)
    refusal: str = ""  # the reply when nothing fits
    preface: str = ""  # what the service says before an answer
    by_document: bool = False  # whether each document is quoted, as for a comparison of files


@dataclass(frozen=True, kw_only=True)
class Quotes:
    """The sentences that answer best, and what their choice says about the answer."""

    evidence: Evidence  # that they were chosen from
    sentences: tuple[Sentence, ...] = ()  # empty: nothing fits
    places: tuple[Excerpt, ...] = ()  # best first
    lead: float | None = None  # probability that the first sentence is the best of all; None: not known
    unmatched: float | None = None  # what its surroundings leave open of the question, see coverage.py
    is_degraded: bool = False  # words alone chose, because the embedding model failed

    @property
    def pieces(self) -> list[str]:
        """The text as it is streamed: a paragraph for each sentence, with its citation mark; else the refusal."""
        if not self.sentences:
            return [self.evidence.refusal]
        pieces: list[str] = []
        previous: Sentence | None = None
        for sentence in self.sentences:
            if previous is not None and sentence.header and sentence.header == previous.header:
                pieces.append("\n" + sentence.text)  # one more row below the same header
            else:
                quote = f"{sentence.header}\n{sentence.text}" if sentence.header else sentence.text
                pieces.append(f"\n\n{quote}" if previous else quote)
            pieces.append(f" [C{sentence.mark}]")
            previous = sentence
        return list(map(replace_unstorable, pieces))
