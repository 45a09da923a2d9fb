"""The shipped question sets in memory, and what BM25 says of their questions, which no embedding model changes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from rag_service.domain import Filters
from rag_service.indices import IndexDefinition, shipped_folder
from rag_service.language.words import frequencies
from rag_service.retrieval.planner import QueryPlan, find_absent, make_plan
from rag_service.store.search.postings import MIN_CHUNKS, weigh

LANGUAGES = ("en", "es", "fr", "pt")

_Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A question of a set."""

    text: str
    article: int  # number of the article it is about, from 0
    target: int | None  # number of the passage that answers it; None: none does


@dataclass(frozen=True, kw_only=True)
class QuestionSet:
    """Passages in one language, each with its article's title before it, and questions about them."""

    language: str
    passages: tuple[str, ...]
    articles: tuple[int, ...]  # of the passages
    questions: tuple[Asked, ...]

    @cached_property
    def searched(self) -> SearchedPassages:
        return SearchedPassages(self)


def load_shipped() -> list[QuestionSet]:
    """The sets of freely asked questions, one for each of `LANGUAGES`."""
    return [_load(language) for language in LANGUAGES]


def _load(language: str) -> QuestionSet:
    file = shipped_folder("evals") / f"cooperative.{language}.json"
    passages: list[str] = []
    articles: list[int] = []
    questions: list[Asked] = []
    for number, article in enumerate(json.loads(file.read_text(encoding="utf-8"))["data"]):
        for paragraph in article["paragraphs"]:
            for asked in paragraph["qas"]:
                target = None if asked.get("is_impossible") else len(passages)
                questions.append(Asked(text=asked["question"], article=number, target=target))
            passages.append(f"{article['title']}\n\n{paragraph['context']}")
            articles.append(number)
    return QuestionSet(
        language=language, passages=tuple(passages), articles=tuple(articles), questions=tuple(questions)
    )


@dataclass(frozen=True, kw_only=True)
class Matched:
    """What BM25 says of a question and each passage that was searched."""

    question: Asked
    answerable: bool  # from these passages
    ids: npt.NDArray[np.int64]  # numbers of the passages
    bm25: _Floats
    coverage: _Floats  # share of the question that the passage holds, 0..1
    ceiling: float  # maximum BM25 that the question's words could give
    absent: bool  # whether it names something that no passage holds


class SearchedPassages:
    """BM25 over the passages of a set, as the database computes it."""

    def __init__(self, questions: QuestionSet):
        self._set = questions
        counts = [frequencies(text, questions.language) for text in questions.passages]
        self._lengths = np.array([sum(count.values()) for count in counts], dtype=np.float64)
        self._held: dict[str, _Floats] = {}  # index term → how often each passage holds it
        for number, count in enumerate(counts):
            for term, frequency in count.items():
                self._held.setdefault(term, np.zeros(len(counts)))[number] = frequency

    def match(self, index: IndexDefinition, *, without: int | None = None) -> Iterator[Matched]:
        """Ask every question.

        Args:
            index: its synonyms and BM25 parameters.
            without: 0 or 1: the even or the odd articles are missing, and their questions unanswerable; None: no.
        """
        kept = np.array([without is None or article % 2 != without for article in self._set.articles])
        for question in self._set.questions:
            plan = make_plan(question.text, filters=Filters(), index=index)
            there = without is None or question.article % 2 != without
            yield self._match(question, plan, index, kept, answerable=there and question.target is not None)

    def _match(
        self,
        question: Asked,
        plan: QueryPlan,
        index: IndexDefinition,
        kept: npt.NDArray[np.bool_],
        *,
        answerable: bool,
    ) -> Matched:
        total, k1 = int(kept.sum()), index.query.bm25_k1
        held = {term.term: self._held[term.term][kept] for term in plan.terms if term.term in self._held}
        found = {term: count for term, row in held.items() if (count := int((row > 0).sum()))}
        ranking = weigh(plan.terms, found, total, k1=k1)
        covering = weigh(plan.terms, found, max(total, MIN_CHUNKS), k1=k1)
        lengths = self._lengths[kept]
        share = 1 - index.query.bm25_b + index.query.bm25_b * lengths / max(1.0, lengths.mean())
        bm25, covered = np.zeros(total), np.zeros(total)
        for term, weight in ranking.weights.items():
            bm25 += weight * held[term] * (k1 + 1) / (held[term] + k1 * share)
            covered += covering.weights[term] * held[term] * (k1 + 1) / (held[term] + k1)
        return Matched(
            question=question,
            answerable=answerable,
            ids=np.flatnonzero(kept),
            bm25=bm25,
            coverage=np.minimum(1.0, covered / covering.ceiling) if covering.ceiling else covered,
            ceiling=ranking.ceiling,
            absent=bool(find_absent(plan.names, plan.terms, found)),
        )
