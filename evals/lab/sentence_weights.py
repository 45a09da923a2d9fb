"""`python -m evals.lab sentences`: learn which sentences of a passage answer best, for answers by quotation.

For each question the passages are found and read as in a request. The candidates that hold a gold answer are right; a
linear model over their features is fitted so that the softmax of its scores gives them the greatest share. It is
fitted for each language of questions, and once for all of them together.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from rag_service.answering.answerers.quoted import gather_evidence
from rag_service.answering.prompt.notices import make_notices
from rag_service.answering.prompt.packing import pack_sources
from rag_service.answering.prompt.templates import load_prompts, new_boundary
from rag_service.answering.quoting.choice import rate_by_tokens, rate_by_vectors, rate_by_words
from rag_service.answering.quoting.rating import SIMILARITY, TOKEN_FEATURES, WORD_FEATURES, cut_windows
from rag_service.errors import InputError
from rag_service.evaluation.eval_set import SetKind
from rag_service.evaluation.metrics import holds_answer
from rag_service.evaluation.run import RunOptions, Steps, ask_of, find_set, load_corpus
from rag_service.evaluation.workspace import Workspace
from rag_service.models.embedding.guarded import local_model
from rag_service.models.embedding.relevance import UNSCALED

_MAX_CANDIDATES = 80  # per question, in the order of their passages
_PENALTY = 0.03  # of large weights; ten times more or less moves no set by more than a question in a hundred
_STEPS = 300
_RATE = 0.05


@dataclass(frozen=True, kw_only=True)
class Example:
    """A question with the candidates for its answer."""

    set_name: str
    language: str
    model: str  # the embedding model
    part: int  # number of its article: what is measured must not be of an article that was learnt from
    words: np.ndarray  # (candidates, WORD_FEATURES)
    tokens: np.ndarray  # (candidates, TOKEN_FEATURES)
    similarities: np.ndarray  # (candidates,), to the question
    right: np.ndarray  # (candidates,), bool

    @property
    def features(self) -> np.ndarray:
        """All features, in the order of their weights."""
        return np.column_stack([self.words, self.tokens, self.similarities])

    @property
    def without_tokens(self) -> np.ndarray:
        """The features for models without token vectors."""
        return np.column_stack([self.words, self.similarities])


@dataclass(frozen=True, kw_only=True)
class Figures:
    """How well sentences of a set are chosen, by weights learnt from the other half of its articles."""

    set_name: str
    questions: int  # whose answer some candidate holds
    first: float  # share whose first quote holds the answer
    two: float  # that one of the first two does


async def collect_examples(workspace: Workspace, paths: Sequence[Path], steps: Steps) -> list[Example]:
    """The questions of the sets that have answers, with their candidates.

    Raises:
        EvalSetError: a set cannot be used.
        InputError: no question has an answer that was found, or the embedding model has no token vectors.
    """
    options, settings, components = RunOptions(), workspace.settings, workspace.components
    model = local_model(components.embedding)
    if model is None:
        raise InputError(
            "The weights are learnt from token vectors: set RAG_EMBEDDING_PROVIDER to local or huggingface.",
            field="RAG_EMBEDDING_PROVIDER",
        )
    prompts = load_prompts(settings.answers.prompts_path, replacement=settings.answers.template_path)
    examples: list[Example] = []
    for path in paths:
        loaded, index_name = find_set(path, options, settings)
        corpus = await load_corpus(workspace, loaded, workspace.index_named(index_name), steps)
        steps.begin(f"{loaded.name}: reading passages", len(loaded.questions))
        for number, question in enumerate(loaded.questions):
            steps.advance(1)
            if not question.answers:
                continue
            asked = ask_of(corpus, question, options, top_k=settings.retrieval.top_k, threshold=0.0)
            run = replace(components.engine.begin(asked), retrieved=await components.engine.search(asked))
            if not run.found.passages:
                continue
            sources = run.found.passages
            context = pack_sources(run, sources, settings=settings.answers, boundary=new_boundary())
            evidence = gather_evidence(run, context.hits, make_notices(run.found, sources, prompts))
            sentences, words = rate_by_words(evidence)
            sentences, words = sentences[:_MAX_CANDIDATES], words[:_MAX_CANDIDATES]
            right = np.array([holds_answer(f"{each.header}\n{each.text}", question.answers) for each in sentences])
            if right.any():
                best_first = np.argsort(~right, kind="stable").tolist()  # their windows must be read
                windows = cut_windows(sentences, best_first)
                kept, tokens, _ = await rate_by_tokens(evidence, sentences, windows, model)
                compared = [sentences[number] for number in kept]
                similar = await rate_by_vectors(evidence, compared, components.embedding, UNSCALED)
                examples.append(
                    Example(
                        set_name=loaded.name,
                        language=evidence.language,
                        model=model.model_name,
                        part=number if loaded.kind is SetKind.OWN else question.group,
                        words=words[kept],
                        tokens=tokens,
                        similarities=similar,
                        right=right[kept],
                    )
                )
    if not examples:
        raise InputError("None of the questions has an answer that stands in the passages found.", field="PATHS")
    return examples


def cross_validate(examples: Sequence[Example]) -> list[Figures]:
    """The figures of each set, each half of the articles measured with the weights of the other."""
    ranks: dict[str, list[int]] = {}  # set → place of the first right candidate
    for language in sorted({example.language for example in examples}):
        ours = [example for example in examples if example.language == language]
        for half in (0, 1):
            learnt = [example for example in ours if example.part % 2 == half]
            measured = [example for example in ours if example.part % 2 != half]
            if not learnt or not measured:
                continue
            weights = _fit([(example.features, example.right) for example in learnt])
            for example in measured:
                order = np.argsort(-(example.features @ weights), kind="stable")
                ranks.setdefault(example.set_name, []).append(int(np.flatnonzero(example.right[order])[0]))
    return [
        Figures(
            set_name=name,
            questions=len(places),
            first=sum(place < 1 for place in places) / len(places),
            two=sum(place < 2 for place in places) / len(places),
        )
        for name, places in ranks.items()
    ]


def write_weights(file: Path, examples: Sequence[Example], *, run: str) -> None:
    """Learn from all examples, and store the weights by language; "*" holds those of all languages together."""
    by_language = {"*": list(examples)}
    for example in examples:
        by_language.setdefault(example.language, []).append(example)
    languages = {}
    for language, ours in sorted(by_language.items()):
        languages[language] = {
            "words": _learn(WORD_FEATURES, [(each.words, each.right) for each in ours]),
            "vectors": _learn((*WORD_FEATURES, SIMILARITY), [(each.without_tokens, each.right) for each in ours]),
            "tokens": _learn(
                (*WORD_FEATURES, *TOKEN_FEATURES, SIMILARITY), [(each.features, each.right) for each in ours]
            ),
        }
    stored = {"run": run, "model": examples[0].model, "languages": languages}
    file.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")


def _learn(names: Sequence[str], groups: Sequence[tuple[np.ndarray, np.ndarray]]) -> dict[str, float]:
    """The weight of each feature."""
    return dict(zip(names, np.round(_fit(groups), 4).tolist(), strict=True))


def _fit(groups: Sequence[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """Weights that maximise the softmax share of the right candidates, by Adam over all groups at once.

    `groups`: features (candidates, n) and which candidates are right, for each question.
    """
    every = np.vstack([features for features, _ in groups])
    right = np.concatenate([right for _, right in groups])
    sizes = [len(right) for _, right in groups]
    starts = np.cumsum([0, *sizes[:-1]])
    spread = np.maximum(every.std(axis=0), 1e-3)
    scaled = (every - every.mean(axis=0)) / spread
    weights = np.zeros(every.shape[1])
    mean, square = np.zeros_like(weights), np.zeros_like(weights)
    for step in range(1, _STEPS + 1):
        scores = scaled @ weights
        powers = np.exp(scores - np.repeat(np.maximum.reduceat(scores, starts), sizes))
        shares = powers / np.repeat(np.add.reduceat(powers, starts), sizes)
        wanted = np.where(right, powers, 0.0)
        wanted /= np.repeat(np.add.reduceat(wanted, starts), sizes) + 1e-12
        gradient = _PENALTY * weights + scaled.T @ (shares - wanted) / len(groups)
        mean = 0.9 * mean + 0.1 * gradient
        square = 0.999 * square + 0.001 * gradient**2
        weights = weights - _RATE * (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.999**step)) + 1e-8)
    learnt: np.ndarray = weights / spread
    return learnt
