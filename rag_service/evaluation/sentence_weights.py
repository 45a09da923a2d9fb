"""`eval sentences`: learn which sentences of a passage answer best, for answers without a language model.

For each question the passages are found and read as in a request. The candidates that hold a gold answer are right; a
linear model over their features is fitted so that the softmax of its scores gives them the greatest share. It is
fitted for each language of questions, and once for all of them together.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rag_service.answering.prompt.packing import write_prompt
from rag_service.answering.prompt.templates import load_prompts
from rag_service.errors import InputError
from rag_service.evaluation.eval_set import SetKind
from rag_service.evaluation.metrics import holds_answer
from rag_service.evaluation.run import RunOptions, Steps, ask_of, find_set, load_corpus
from rag_service.evaluation.workspace import Workspace
from rag_service.models.extractive.extractive import (
    COMPARED,
    Evidence,
    rate_by_vectors,
    rate_by_words,
)
from rag_service.models.extractive.weights import VECTOR_FEATURES, WORD_FEATURES
from rag_service.store.relevance_fits import AS_IT_IS

_MAX_CANDIDATES = 80  # per question, in the order of their passages
_PENALTY = 0.03  # of large weights; ten times more or less moves no set by more than a question in a hundred
_STEPS = 300
_RATE = 0.05


@dataclass(frozen=True, kw_only=True)
class Example:
    """A question with the candidates for its answer."""

    set_name: str
    language: str
    part: int  # number of its article: what is measured must not be of an article that was learnt from
    features: np.ndarray  # (candidates, WORD_FEATURES)
    similarities: np.ndarray  # (candidates,), to the question
    right: np.ndarray  # (candidates,), bool

    def compared(self, words: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """All features of the candidates that are compared by vectors, and which of them are right."""
        kept = np.argsort(-(self.features @ words), kind="stable")[:COMPARED]
        return np.column_stack([self.features[kept], self.similarities[kept]]), self.right[kept]


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
        InputError: no question has an answer that was found.
    """
    options, settings, components = RunOptions(), workspace.settings, workspace.components
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
            query = ask_of(corpus, question, options, top_k=settings.retrieval.top_k, threshold=0.0)
            hits = await components.engine.search(query)
            if not hits:
                continue
            query.model = components.chat
            prompted = write_prompt(query, hits, prompts=prompts, settings=settings)
            evidence: Evidence = prompted.messages[-1].evidence  # type: ignore[attr-defined]  # a GroundedMessage
            sentences, features = rate_by_words(evidence)
            sentences, features = sentences[:_MAX_CANDIDATES], features[:_MAX_CANDIDATES]
            right = np.array([holds_answer(f"{each.header}\n{each.text}", question.answers) for each in sentences])
            if right.any():
                vectors = await rate_by_vectors(question.text, sentences, components.embedding)
                examples.append(
                    Example(
                        set_name=loaded.name,
                        language=evidence.language,
                        part=number if loaded.kind is SetKind.OWN else question.group,
                        features=features,
                        similarities=AS_IT_IS.similarity(vectors[:, 0]),
                        right=right,
                    )
                )
    if not examples:
        raise InputError("None of the questions has an answer that stands in the passages found.", field="PATHS")
    return examples


def learn(examples: Sequence[Example]) -> tuple[np.ndarray, np.ndarray]:
    """The weights of words alone, and of words and vectors."""
    words = _fit([(example.features, example.right) for example in examples])
    compared = [example.compared(words) for example in examples]
    return words, _fit([(features, right) for features, right in compared if right.any()])


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
            words, vectors = learn(learnt)
            for example in measured:
                features, right = example.compared(words)
                order = np.argsort(-(features @ vectors), kind="stable")
                found = np.flatnonzero(right[order])
                ranks.setdefault(example.set_name, []).append(int(found[0]) if len(found) else COMPARED)
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
        words, vectors = learn(ours)
        languages[language] = {
            "words": dict(zip(WORD_FEATURES, np.round(words, 4).tolist(), strict=True)),
            "vectors": dict(zip((*WORD_FEATURES, *VECTOR_FEATURES), np.round(vectors, 4).tolist(), strict=True)),
        }
    file.write_text(json.dumps({"run": run, "languages": languages}, indent=1) + "\n", encoding="utf-8")


def _fit(groups: Sequence[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """Weights that maximise the softmax share of the right candidates, by Adam over all groups at once.

    Args:
        groups: features (candidates, n) and which candidates are right, for each question.
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
