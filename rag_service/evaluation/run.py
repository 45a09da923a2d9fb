"""One evaluation run: a set through retriever and engine, to measures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from rag_service.definitions import IndexDefinition, shipped_folder
from rag_service.domain import Answer, AnswerQuery, Chunk, Filters, Hit
from rag_service.errors import InputError
from rag_service.evaluation.datasets import OWN_INDICES, load_set
from rag_service.evaluation.eval_set import EvalSet, Question, SetKind, leave_out
from rag_service.evaluation.metrics import (
    Bin,
    Measured,
    Ranked,
    is_refusal,
    measure_answers,
    measure_ranking,
    measure_refusals,
    reliability,
)
from rag_service.evaluation.workspace import EvalCorpus, Workspace
from rag_service.query.engine import RERANKED
from rag_service.query.retrieval.retriever import Mode, Retrieval
from rag_service.settings import Settings
from rag_service.text.words import fold

Rerank = Literal["none", "heuristic", "sbert", "llm", "cohere"]


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """What a run varies; None takes the value that requests get."""

    mode: Mode = "hybrid"
    alpha: float | None = None  # share of the dense leg
    rerank: Rerank | None = None
    threshold: float | None = None  # least calibrated relevance, for refusals; rankings are not cut by it
    limit: int = 10  # hits judged for a question
    ks: tuple[int, ...] = (3, 5, 10)
    answers: bool = False  # also write answers
    leave_out: int | None = None
    index: str | None = None
    documents: Path | None = None  # of own sets
    first: int | None = None  # only so many questions

    def __post_init__(self) -> None:
        if not self.ks or min(self.ks) < 1 or max(self.ks) > self.limit:
            raise InputError(f"--k must lie between 1 and --limit ({self.limit}).", field="k")

    def applied_to(self, settings: Settings) -> Settings:
        """The settings that the workspace must be opened with."""
        changed: dict[str, object] = {"hybrid": self.mode != "dense"}
        if self.rerank is not None:
            changed["rerank_strategy"] = self.rerank
        return settings.model_copy(update=changed)


@dataclass(frozen=True, kw_only=True)
class SetResult:
    """What a set gave."""

    loaded: EvalSet
    index: IndexDefinition
    definition: str  # fingerprint of the ingest part and hash of the query part
    chunk_count: int
    threshold: float
    measures: dict[str, Measured]
    milliseconds: tuple[float, ...]  # search time of each question, embedding not counted
    bins: tuple[Bin, ...] = ()


class Steps:
    """Receives the progress of a run; the command line draws it, this one is silent."""

    def begin(self, step: str, total: int) -> None:
        """A step with so many units begins."""

    def advance(self, count: int) -> None:
        """So many more units are done."""


def find_set(path: Path, options: RunOptions, settings: Settings) -> tuple[EvalSet, str]:
    """A set by path and the name of the index that rules it.

    Raises:
        EvalSetError: the set cannot be used.
    """
    home = OWN_INDICES.get(path.stem, settings.index)  # whose documents an own set is about
    named = options.index or home
    documents = options.documents
    if documents is None and path.suffix == ".jsonl":
        documents = shipped_folder("indices") / home / "documents"
    loaded = load_set(path, documents=documents)
    if options.leave_out is not None:
        loaded = leave_out(loaded, every=options.leave_out)
    return loaded, named


async def run_set(
    workspace: Workspace, loaded: EvalSet, index: IndexDefinition, options: RunOptions, steps: Steps
) -> SetResult:
    """Ingest what is missing, ask every question, measure.

    Raises:
        DocumentError, EmbeddingError, StoreError, ModelError: as the parts raise them.
    """
    questions = loaded.questions[: options.first]
    corpus = await load_corpus(workspace, loaded, index, steps)
    await embed_questions(workspace, questions, options.mode, steps)
    workspace.retriever.hold(mode=options.mode, alpha=options.alpha)
    threshold = threshold_of(options, index, workspace.settings)
    steps.begin(f"{loaded.name}: searching", len(questions))
    rankings, refused, times = [], [], []
    for question in questions:
        retrieval, hits = await search(workspace, corpus, question, limit=options.limit)
        refused.append(not any(hit.scores.relevance >= threshold for hit in hits))
        rankings.append([_rank(hit, question, corpus) for hit in hits[: options.limit]])
        times.append(sum(value for step, value in retrieval.timings_ms.items() if step != "embedding"))
        steps.advance(1)
    measures = measure_ranking(questions, rankings, ks=options.ks, by_document=loaded.kind is SetKind.OWN)
    bins: list[Bin] = []
    if options.answers:
        answers = await _answer_all(workspace, corpus, questions, threshold, steps)
        refused = [is_refusal(answer) for answer in answers]
        measures |= measure_answers(questions, answers)
        bins = reliability(questions, answers)
    measures |= measure_refusals(questions, refused)
    return SetResult(
        loaded=loaded,
        index=index,
        definition=f"{workspace.ingestor.fingerprint(index)}:{index.query_hash}",
        chunk_count=corpus.chunk_count,
        threshold=threshold,
        measures=measures,
        milliseconds=tuple(times),
        bins=tuple(bins),
    )


async def load_corpus(workspace: Workspace, loaded: EvalSet, index: IndexDefinition, steps: Steps) -> EvalCorpus:
    """The set's corpus, with progress."""
    steps.begin(f"{loaded.name}: ingesting", len(loaded.passages) or len(loaded.documents))
    return await workspace.load(loaded, index, steps.advance)


async def embed_questions(workspace: Workspace, questions: Sequence[Question], mode: Mode, steps: Steps) -> None:
    """Embed all questions ahead, with progress."""
    if mode == "lexical":
        return
    steps.begin("embedding questions", len(questions))
    await workspace.embedding.prefetch_queries([question.text for question in questions], steps.advance)


async def search(
    workspace: Workspace, corpus: EvalCorpus, question: Question, *, limit: int
) -> tuple[Retrieval, tuple[Hit, ...]]:
    """A search as a request makes it, and its hits but for the threshold."""
    query = AnswerQuery(
        question=question.text,
        filters=Filters(corpus_ids=(corpus.id,)),
        top_k=max(limit, RERANKED),
        threshold=0.0,
    )
    return await workspace.engine.search(query, workspace.identity)


async def _answer_all(
    workspace: Workspace, corpus: EvalCorpus, questions: Sequence[Question], threshold: float, steps: Steps
) -> list[Answer]:
    steps.begin("answering", len(questions))
    answers = []
    for question in questions:
        query = AnswerQuery(
            question=question.text,
            filters=Filters(corpus_ids=(corpus.id,)),
            top_k=workspace.settings.topk_default,
            threshold=threshold,
        )
        answers.append(await workspace.engine.answer(query, workspace.identity))
        steps.advance(1)
    return answers


def threshold_of(options: RunOptions, index: IndexDefinition, settings: Settings) -> float:
    """The option's, else the definition's, else the setting's."""
    if options.threshold is not None:
        return options.threshold
    return settings.similarity_threshold if index.query.threshold is None else index.query.threshold


def _rank(hit: Hit, question: Question, corpus: EvalCorpus) -> Ranked:
    chunk = hit.chunk
    key = corpus.passages.get(chunk.id) or chunk.document.file_name or ""
    return Ranked(
        key=key,
        chunk_id=chunk.id,
        relevance=hit.scores.relevance,
        right_section=key in question.targets and _is_in_section(chunk, question.sections),
    )


def _is_in_section(chunk: Chunk, sections: Sequence[str]) -> bool:
    """Whether a chunk belongs to one of the sections; a format without headings shows them as lines."""
    headings = {fold(heading) for span in chunk.spans for heading in span.location.headings}
    if not headings:
        headings = {fold(line.strip()) for line in chunk.text.splitlines()}
    return any(fold(section) in headings for section in sections)
