"""Chooses the sentences of passages that answer a question best.

Which ones do is learnt: a linear model over what words, token vectors and the sentence's own vector tell of each
(rating.py names the features), one for each language of questions, its weights in weights.json.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import repeat
from operator import attrgetter, itemgetter
from uuid import UUID

import numpy as np
import structlog
from llama_index.core.base.embeddings.base import BaseEmbedding

from rag_service.answering.quoting.answer_types import answer_type
from rag_service.answering.quoting.quotes import Evidence, Quotes, cut_openings, cut_places
from rag_service.answering.quoting.rating import (
    WORD_FEATURES,
    Window,
    cut_windows,
    load_weights,
    rate_tokens,
    rate_unmatched,
    read_asked_words,
    read_window,
)
from rag_service.answering.quoting.sentences import Sentence, read_sentences
from rag_service.domain import Hit
from rag_service.errors import EmbeddingError
from rag_service.language.designations import Opening, changes, names_document
from rag_service.language.ngrams import character_ngrams, find_ngrams, weigh_by_rarity
from rag_service.language.words import word_forms
from rag_service.models.embedding.local import LocalEmbedding
from rag_service.models.embedding.relevance import UNSCALED
from rag_service.models.local_runtime import somebody_waits
from rag_service.recent import Recent
from rag_service.store.relevance_fits import CosineScale

log = structlog.get_logger(__name__)

COMPARED = 12  # sentences compared by vectors: the best by the other features; 8 to 16 choose alike (decision 020)
_REACH = 5.0  # in log odds: what is farther behind the best is not read by the next model (decision 020)
_JOINED = 0.05  # probability of neighbouring sentences that are quoted as one; set on the cooperative sets
_ENDS = re.compile(r"[.!?…]\W*$")  # of a sentence
_UNSPACED_STOPS = "。！？"
_NUMBER = re.compile(r"(?<![\w.,])\d{1,9}(?![\w]|[.,]\d)")
_RANGE = re.compile(r"(?<![\w.,])(\d{1,9}) ?(?:[-–—]|\b(?:a|to|y|and|et|e|ate)\b) ?(\d{1,9})\b")  # in folded text


async def choose_quotes(
    evidence: Evidence,
    embedding: BaseEmbedding | None,
    *,
    reader: LocalEmbedding | None = None,
    scale: CosineScale = UNSCALED,
    deadline: float | None = None,
    recent: Recent[list[float]] | None = None,
) -> Quotes:
    """Return the quote of the shown passages that answers best, and what amends it; else the beginnings of passages.

    Args:
        embedding: compares sentences with the question; None: by words alone.
        reader: the model whose token vectors are compared as well.
        scale: maps cosines onto those of the packaged model, for which the weights were learnt.
        deadline: time of the event loop from which words alone choose; None: none.
        recent: keeps vectors of sentences.
    """
    every, features = await asyncio.to_thread(rate_by_words, evidence)
    if not every:
        places = cut_openings(evidence.hits, evidence.question, evidence.language)
        return Quotes(evidence=evidence, places=tuple(places))
    by_words: np.ndarray = features @ load_weights(evidence.language).words
    candidates, scores, is_degraded = every, by_words, False
    if embedding is not None:
        try:
            async with asyncio.timeout_at(deadline):
                candidates, scores = await _compare(evidence, every, features, embedding, reader, scale, recent)
        except (EmbeddingError, TimeoutError) as error:  # words alone choose well enough
            log.warning("answer_degraded", without="cosine", exc_info=error)
            is_degraded = True
    quotes = await asyncio.to_thread(_quote_best, evidence, candidates, scores, every, by_words)
    return replace(quotes, is_degraded=is_degraded)


def _quote_best(
    evidence: Evidence,
    candidates: Sequence[Sentence],
    scores: np.ndarray,
    every: Sequence[Sentence],
    by_words: np.ndarray,
) -> Quotes:
    """Return the quotes, and the places: the candidates by their scores, then every sentence by words."""
    shares = np.exp(scores - scores.max())
    shares /= shares.sum()
    quotes = sorted(_merge_copies(join_runs(candidates, shares.tolist())), key=itemgetter(1), reverse=True)
    first, lead = quotes[0]
    amending = _find_amending(first, every, evidence.hits)
    best, *others = (candidates[number] for number in np.argsort(-scores, kind="stable"))
    ranked = [best, *amending, *others, *(every[number] for number in np.argsort(-by_words, kind="stable"))]
    return Quotes(
        evidence=evidence,
        sentences=(first, *amending),
        places=tuple(cut_places(ranked, every, evidence.hits, evidence.question, evidence.language)),
        lead=lead,
        unmatched=first.unmatched,
    )


async def _compare(
    evidence: Evidence,
    candidates: list[Sentence],
    features: np.ndarray,
    embedding: BaseEmbedding,
    reader: LocalEmbedding | None,
    scale: CosineScale,
    recent: Recent[list[float]] | None,
) -> tuple[list[Sentence], np.ndarray]:
    """The best candidates by words, and by token vectors if there is a reader, with their scores."""
    weights = load_weights(evidence.language, "" if reader is None else reader.model_name)
    best_first = _in_reach(features @ weights.words)
    if reader is None or weights.tokens is None:
        chosen, kept = weights.vectors, np.sort(best_first[:COMPARED])
    else:
        chosen, windows = weights.tokens, cut_windows(candidates, best_first.tolist())
        numbers, tokens, unmatched = await rate_by_tokens(evidence, candidates, windows, reader)
        candidates = [
            replace(candidates[number], unmatched=left) for number, left in zip(numbers, unmatched, strict=True)
        ]
        features = np.hstack([features[numbers], tokens])
        kept = np.sort(_in_reach(features @ chosen[:-1])[:COMPARED])
    candidates = [candidates[number] for number in kept]
    similar = await rate_by_vectors(evidence, candidates, embedding, scale, recent)
    scores: np.ndarray = np.column_stack([features[kept], similar]) @ chosen
    return candidates, scores


def _in_reach(scores: np.ndarray) -> np.ndarray:
    """The numbers of the candidates that the next comparison may still put first, best first."""
    best_first: np.ndarray = np.argsort(-scores, kind="stable")
    within: np.ndarray = best_first[scores[best_first] >= np.max(scores) - _REACH]
    return within


async def rate_by_tokens(
    evidence: Evidence, candidates: Sequence[Sentence], windows: Sequence[Window], model: LocalEmbedding
) -> tuple[list[int], np.ndarray, list[float | None]]:
    """Return the numbers of the candidates in the windows, with one row of `TOKEN_FEATURES` and `unmatched` each.

    Raises EmbeddingError if the model fails.
    """
    texts, begins = zip(*map(read_window, windows, repeat(evidence.hits)), strict=True)
    try:
        query, *read = await model.aget_token_vectors(evidence.question, texts)
    except Exception as error:  # the runtime of a model raises whatever it likes
        raise EmbeddingError("The embedding model failed.") from error
    asked = read_asked_words(evidence.question, evidence.language, evidence.weights)
    numbers: list[int] = []
    rated: list[np.ndarray] = []
    unmatched: list[float | None] = []
    for window, vectors, begin in zip(windows, read, begins, strict=True):
        numbers += window.sentences
        rated.append(rate_tokens(query, vectors, candidates, window, begin))
        unmatched += [rate_unmatched(asked, query, vectors)] * len(window.sentences)
    return numbers, np.vstack(rated), unmatched


def join_runs(sentences: Sequence[Sentence], shares: Sequence[float]) -> list[tuple[Sentence, float]]:
    """Quotes with their probabilities, 0..1: sentences of prose that follow each other in a paragraph become one.

    Args:
        sentences: in the order of the passages.
        shares: probability of each that it answers; both neighbours need `_JOINED`.
    """
    quotes: list[tuple[Sentence, float]] = []
    for number, (sentence, share) in enumerate(zip(sentences, shares, strict=True)):
        last = sentences[number - 1]
        is_next = sentence.continues and (last.mark, last.position + 1) == (sentence.mark, sentence.position)
        is_prose = not (sentence.is_row or last.is_row or "\n" in sentence.text or "\n" in last.text)
        if number and is_next and is_prose and min(share, shares[number - 1]) >= _JOINED:
            run, before = quotes.pop()
            joint = "" if run.text[-1] in _UNSPACED_STOPS else " "  # as they stand in the passage
            sentence = replace(
                sentence,
                text=f"{run.text}{joint}{sentence.text}",
                folded=f"{run.folded}{joint}{sentence.folded}",
                unmatched=run.unmatched,
                forms=run.forms | sentence.forms,
            )
            share += before
        quotes.append((sentence, share))
    return quotes


def _find_amending(quote: Sentence, every: Sequence[Sentence], hits: Sequence[Hit]) -> list[Sentence]:
    """Return the first sentence of another document that changes what a quote says."""
    old = hits[quote.mark - 1].chunk.document
    for sentence in every:
        chunk = hits[sentence.mark - 1].chunk
        if chunk.document.id == old.id or not changes(sentence.text, quote.text, title=old.title):
            continue
        if names_document(old.title, Opening(chunk.document.title, chunk.text)):
            return [sentence]
    return []


def _merge_copies(quotes: Sequence[tuple[Sentence, float]]) -> list[tuple[Sentence, float]]:
    """Return each text once, with the probability of all its copies: sources that agree do not compete."""
    merged: dict[str, tuple[Sentence, float]] = {}
    for quote, share in quotes:
        text = _on_one_line(quote.folded)
        first, before = merged.get(text, (quote, 0.0))
        merged[text] = first, before + share
    return list(merged.values())


def rate_by_words(evidence: Evidence) -> tuple[list[Sentence], np.ndarray]:
    """All sentences of the passages, and what words tell of each: one row of `WORD_FEATURES` a sentence.

    A word of the question that no chunk holds in any form cannot tell sentences apart and is left out.
    """
    weights, equivalents = evidence.weights, evidence.equivalents
    asked: dict[int | str, set[str]] = {}  # word of the question → its forms in the corpora
    weight_of: dict[int | str, float] = {}
    for term in (word_forms(evidence.question) | equivalents.keys()) & weights.keys():
        word = equivalents.get(term, term)
        asked.setdefault(word, set()).add(term)
        weight_of[word] = max(weight_of.get(word, 0.0), weights[term])
    total = sum(weight_of.values()) or 1.0
    wanted, known = answer_type(evidence.question), word_forms(evidence.question)
    figures = list(map(int, _NUMBER.findall(evidence.question)))
    standings = [hit.scores.relevance if hit.scores.fused is None else hit.scores.fused for hit in evidence.hits]
    best = max(standings, default=0.0) or 1.0
    sentences: list[Sentence] = []
    rows: list[list[float]] = []
    every = list(_read_passages(evidence))
    headers = _find_page_headers(every, evidence.hits)
    for sentence in every:
        if not _ENDS.search(sentence.text) and sentence.forms and sentence.forms <= known:
            continue  # a piece of a line that tells no more than the question
        held = sum(weight_of[word] for word, forms in asked.items() if not sentence.forms.isdisjoint(forms))
        fits = wanted is not None and wanted.search(sentence.folded) is not None
        if not (held or fits) and sentence.folded in headers:
            continue
        named = _share_of_figures(figures, sentence.folded) if figures else 0.0
        standing = max(0.0, standings[sentence.mark - 1])
        rows.append([held / total, 0.0, 0.0, standing / best, float(fits), named])
        sentences.append(sentence)
    features = np.array(rows).reshape(-1, len(WORD_FEATURES))
    features[:, 1:3] = _rate_spelling(evidence.question, sentences)
    return sentences, features


def _read_passages(evidence: Evidence) -> Iterator[Sentence]:
    for mark, hit in enumerate(evidence.hits, start=1):
        chunk = hit.chunk
        begins = chunk.start == 0
        for sentence in read_sentences(chunk.text, evidence.language, chunk.spans, chunk.document.title, begins=begins):
            yield replace(sentence, mark=mark)


def _find_page_headers(sentences: Sequence[Sentence], hits: Sequence[Hit]) -> set[str]:
    """Return the lines, folded, that stand at several places of a document and are no sentence."""
    places: dict[tuple[UUID, str], set[int]] = {}
    for sentence in sentences:
        if not (sentence.is_row or _ENDS.search(sentence.text)):
            chunk = hits[sentence.mark - 1].chunk  # neighbours overlap
            places.setdefault((chunk.document.id, sentence.folded), set()).add(chunk.start + sentence.start)
    return {text for (_, text), starts in places.items() if len(starts) > 1}


def _on_one_line(text: str) -> str:
    return " ".join(text.split())


def _rate_spelling(question: str, sentences: Sequence[Sentence]) -> np.ndarray:
    """The shares of the question's n-grams: of each sentence, and of the one before it."""
    wanted = character_ngrams(question)
    held = find_ngrams(wanted, list(map(attrgetter("ngrams"), sentences)))
    own = held @ weigh_by_rarity(held)
    marks = np.array(list(map(attrgetter("mark"), sentences)))
    before = np.zeros_like(own)
    continues = np.array(list(map(attrgetter("continues"), sentences)), dtype=np.bool_)
    before[1:] = np.where((marks[1:] == marks[:-1]) & continues[1:], own[:-1], 0.0)
    return np.column_stack([own, before])


def _share_of_figures(figures: Sequence[int], folded: str) -> float:
    said = set(map(int, _NUMBER.findall(folded)))
    return sum(figure in said or _is_in_range(figure, folded) for figure in figures) / len(figures)


def _is_in_range(number: int, folded: str) -> bool:
    return any(int(low) <= number <= int(high) for low, high in _RANGE.findall(folded))


async def _embed(
    texts: Sequence[str], embedding: BaseEmbedding, recent: Recent[list[float]] | None
) -> list[list[float]]:
    """The vectors of texts; those in `recent` are not computed again."""
    found = {text: None if recent is None else recent.get(text) for text in texts}
    if missing := [text for text, vector in found.items() if vector is None]:
        with somebody_waits():
            made = await embedding.aget_text_embedding_batch(missing)
        for text, vector in zip(missing, made, strict=True):
            found[text] = vector
            if recent is not None:
                recent.keep(text, vector)
    return [one for text in texts if (one := found[text]) is not None]


async def rate_by_vectors(
    evidence: Evidence,
    candidates: Sequence[Sentence],
    embedding: BaseEmbedding,
    scale: CosineScale,
    recent: Recent[list[float]] | None = None,
) -> np.ndarray:
    """How similar each candidate is to the question beyond what the title of its document says, (candidates,).

    A sentence that defines what the document is about repeats the question's words like its title, and answers little:
    the similarity that both owe to the title is taken off.
    """
    all_titles = list(map(attrgetter("chunk.document.title"), evidence.hits))
    titles = np.array(all_titles, dtype=object)[np.array(list(map(attrgetter("mark"), candidates))) - 1]
    named = list(dict.fromkeys(filter(str.strip, titles)))
    query = np.asarray(await embedding.aget_query_embedding(evidence.question))
    texts = [*map(attrgetter("text"), candidates), *named]
    vectors = np.asarray(await _embed(texts, embedding, recent))
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors = vectors / np.where(lengths > 0, lengths, 1.0)
    similar = scale.similarity(vectors @ query / (np.linalg.norm(query) or 1.0))
    found: np.ndarray = similar[: len(candidates)].copy()
    for title, vector, to_question in zip(named, vectors[len(candidates) :], similar[len(candidates) :], strict=True):
        under = titles == title
        found[under] -= to_question * scale.similarity(vectors[: len(candidates)][under] @ vector)
    return found
