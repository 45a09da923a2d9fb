"""One evaluation run: a set through retriever and engine, to measures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from rich.progress import Progress, TaskID

from rag_service.domain import LOCAL_ADMIN, Chunk, Filters, Hit
from rag_service.errors import InputError
from rag_service.evaluation.datasets import OWN_INDICES, load_set
from rag_service.evaluation.eval_set import EvalSet, Question, SetKind, leave_out, translate_questions
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
from rag_service.indices import IndexDefinition, shipped_folder
from rag_service.language.words import fold
from rag_service.retrieval.found import Found
from rag_service.retrieval.question import RERANKED, Mode
from rag_service.retrieval.question import Question as AskedQuestion
from rag_service.settings import Settings

Rerank = Literal["none", "heuristic", "sbert", "llm", "cohere"]


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """The options of a run. None: the value that requests get."""

    mode: Mode = "hybrid"
    alpha: float | None = None  # weight of vector search, 0..1
    rerank: Rerank | None = None
    threshold: float | None = None  # minimum relevance, for refusals; rankings are not cut by it
    limit: int = 10  # hits judged per question
    ks: tuple[int, ...] = (3, 5, 10)
    answers: bool = False  # also write answers
    leave_out: int | None = None
    index: str | None = None
    documents: Path | None = None  # of own sets
    questions: Path | None = None  # a translation of the set, whose questions are asked instead
    first: int | None = None  # number of questions; None: all

    def __post_init__(self) -> None:
        if not self.ks or min(self.ks) < 1 or max(self.ks) > self.limit:
            raise InputError(f"--k must lie between 1 and --limit ({self.limit}).", field="k")

    def applied_to(self, settings: Settings) -> Settings:
        """The settings to open the workspace with."""
        rerank = self.rerank or settings.rerank.strategy
        return settings.replace({"hybrid": self.mode != "dense", "rerank_strategy": rerank})


@dataclass(frozen=True, kw_only=True)
class SetResult:
    loaded: EvalSet
    index: IndexDefinition
    definition: str  # fingerprint of the ingest part and hash of the query part
    chunk_count: int
    threshold: float
    measures: dict[str, Measured]
    milliseconds: tuple[float, ...]  # search time of each question, embedding not counted
    bins: tuple[Bin, ...] = ()


class Steps:
    """Shows the progress of a run: a bar for the present step."""

    def __init__(self, progress: Progress):
        self._progress = progress
        self._task: TaskID | None = None

    def begin(self, step: str, total: int) -> None:
        """A step with `total` units begins."""
        if self._task is not None:
            self._progress.remove_task(self._task)
        self._task = self._progress.add_task(step, total=total)

    def advance(self, count: int) -> None:
        """`count` more units are done."""
        if self._task is not None:
            self._progress.advance(self._task, count)


def find_set(path: Path, options: RunOptions, settings: Settings) -> tuple[EvalSet, str]:
    """A set by path, and the name of its index. Raises EvalSetError if the set cannot be used."""
    home = OWN_INDICES.get(path.stem, settings.indices.default)  # an own set is about its documents
    documents = options.documents
    if documents is None and path.suffix == ".jsonl":
        documents = shipped_folder("indices") / home / "documents"
    loaded = load_set(path, documents=documents)
    if options.questions is not None:
        loaded = translate_questions(loaded, load_set(options.questions))
    if options.leave_out is not None:
        loaded = leave_out(loaded, every=options.leave_out)
    return loaded, options.index or home


async def run_set(
    workspace: Workspace, loaded: EvalSet, index: IndexDefinition, options: RunOptions, steps: Steps
) -> SetResult:
    """Ingest what is missing, ask every question, measure."""
    questions = loaded.questions[: options.first]
    corpus = await load_corpus(workspace, loaded, index, steps)
    threshold = options.threshold
    if threshold is None:
        threshold = workspace.settings.retrieval.threshold if index.query.threshold is None else index.query.threshold
    steps.begin(f"{loaded.name}: searching", len(questions))
    rankings, refused, times = [], [], []
    for question in questions:
        found = await search(workspace, corpus, question, options)
        hits = found.passages
        refused.append(not any(hit.scores.relevance >= threshold for hit in hits))
        rankings.append([_rank(hit, question, corpus) for hit in hits[: options.limit]])
        times.append(sum(value for step, value in found.timings_ms.items() if step != "embedding"))
        steps.advance(1)
    measures = measure_ranking(questions, rankings, ks=options.ks, by_document=loaded.kind is SetKind.OWN)
    bins: list[Bin] = []
    if options.answers:
        steps.begin("answering", len(questions))
        answers = []
        for question in questions:
            asked = ask_of(
                corpus, question, options, top_k=workspace.settings.retrieval.top_k, threshold=options.threshold
            )
            answers.append(await workspace.components.engine.answer(asked))
            steps.advance(1)
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


async def search(workspace: Workspace, corpus: EvalCorpus, question: Question, options: RunOptions) -> Found:
    """Search as a request does, but without a threshold."""
    asked = ask_of(corpus, question, options, top_k=max(options.limit, RERANKED), threshold=0.0)
    return await workspace.components.engine.search(asked)


def ask_of(
    corpus: EvalCorpus, question: Question, options: RunOptions, *, top_k: int, threshold: float | None
) -> AskedQuestion:
    """A question of a set as a request over its corpus; no threshold: the index's, else the setting's."""
    return AskedQuestion(
        question.text,
        identity=LOCAL_ADMIN,
        filters=Filters(corpus_ids=(corpus.id,)),
        top_k=top_k,
        threshold=threshold,
        mode=options.mode,
        alpha=options.alpha,
        recorded=False,
    )


def _rank(hit: Hit, question: Question, corpus: EvalCorpus) -> Ranked:
    chunk = hit.chunk
    key = corpus.passages.get(chunk.id) or chunk.document.file_name or ""
    return Ranked(
        key=key,
        chunk_id=chunk.id,
        right_section=key in question.targets and _is_in_section(chunk, question.sections),
    )


def _is_in_section(chunk: Chunk, sections: Sequence[str]) -> bool:
    """Whether a chunk belongs to one of the sections; a format without headings shows them as lines."""
    headings = {fold(heading) for span in chunk.spans for heading in span.location.headings}
    if not headings:
        headings = {fold(line.strip()) for line in chunk.text.splitlines()}
    return any(fold(section) in headings for section in sections)
