"""A response without a chat model: sentences of the article, sorted by the type of their chunk."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest

from rag_service.advisor.required_data import REQUIRED_DATA_TYPE
from rag_service.advisor.schema import Part, SectionReply
from rag_service.answering.guards.guardrails import ALWAYS_MENTION, GUARDRAIL_TYPES, read_rules
from rag_service.domain import Hit
from rag_service.language.sentences import split_sentences
from rag_service.language.words import count_tokens, terms, words

PART_OF_TYPE: Mapping[str, Part] = {
    "decision_guide": "answerComponents",
    "response_frame": "answerComponents",
    "steps": "steps",
    "fees": "warnings",
    "common_issues": "warnings",
}
MATCHING_SENTENCES = 3  # sentences of other types that answer the inquiry best
_MIN_WORDS = 3
_LIST_MARK = re.compile(r"^(?:[-*+•‣▪–>]\s+|\d{1,2}[.)]\s+)+")
_NO_SENTENCE = re.compile(r"^\s*#{1,6}\s| \| ")
_BOLD = re.compile(r"\*\*([^*\n]+)\*\*")


def quote_sections(
    hits: Sequence[Hit], *, inquiry: str, weights: Mapping[str, float], language: str, tokens: int
) -> list[SectionReply]:
    """One section whose statements are sentences of the chunks, each with its mark; whole ones, up to a budget.

    Args:
        hits: the chunks shown, [C1] first.
        inquiry: what is asked; its best matches among the other types go first.
        weights: index term → idf, as the retrieval gives them.
        language: ISO 639-1 of the inquiry.
        tokens: maximum of all statements together.
    """
    parts: dict[Part, list[str]] = {
        "answerComponents": _best_matches(hits, inquiry, weights, language),
        "steps": [],
        "warnings": [f"{rule} [C{mark}]" for mark, rule in _things_to_mention(hits)],
    }
    for mark, hit in enumerate(hits, start=1):
        if part := PART_OF_TYPE.get(hit.chunk.type or ""):
            parts[part] += [f"{sentence} [C{mark}]" for sentence in _sentences(hit.chunk.text)]
    chosen = _within(parts, tokens)
    if not any(chosen.values()):
        return []
    return [
        SectionReply(
            topic=hits[0].chunk.document.title,
            answer_components=chosen["answerComponents"],
            steps=chosen["steps"],
            warnings=chosen["warnings"],
        )
    ]


def _best_matches(hits: Sequence[Hit], inquiry: str, weights: Mapping[str, float], language: str) -> list[str]:
    """Sentences that hold most of the inquiry's idf mass, of the types that no part of the response is made of."""
    asked = {term: weight for term in terms(inquiry, language) if (weight := weights.get(term))}
    rated = []
    for mark, hit in enumerate(hits, start=1):
        if hit.chunk.type in {*PART_OF_TYPE, *GUARDRAIL_TYPES, REQUIRED_DATA_TYPE}:
            continue
        for sentence in _sentences(hit.chunk.text):
            held = set(terms(sentence, language))
            share = sum(weight for term, weight in asked.items() if term in held)
            if share:
                rated.append((share, f"{sentence} [C{mark}]"))
    rated.sort(key=lambda item: -item[0])
    return [sentence for _, sentence in rated[:MATCHING_SENTENCES]]


def _things_to_mention(hits: Sequence[Hit]) -> Iterator[tuple[int, str]]:
    marks = {hit.chunk.id: mark for mark, hit in enumerate(hits, start=1)}
    for rule in read_rules(hits):
        if rule.kind == ALWAYS_MENTION:
            yield marks[rule.hit.chunk.id], rule.phrase[:1].upper() + rule.phrase[1:]


def _sentences(text: str) -> Iterator[str]:
    for start, end in split_sentences(text):
        sentence = text[start:end]
        if _NO_SENTENCE.search(sentence):
            continue
        plain = _BOLD.sub(r"\1", " ".join(_LIST_MARK.sub("", sentence.strip()).split()))
        if len(words(plain)) >= _MIN_WORDS:
            yield plain


def _within(parts: Mapping[Part, Sequence[str]], tokens: int) -> dict[Part, list[str]]:
    """Statements of all parts in turn, whole, while the budget lasts; order within a part is kept."""
    chosen: dict[Part, list[str]] = {part: [] for part in parts}
    for row in zip_longest(*parts.values()):
        for part, statement in zip(parts, row, strict=True):
            if statement is None:
                continue
            cost = count_tokens(statement) + 2
            if cost > tokens:
                return chosen
            tokens -= cost
            chosen[part].append(statement)
    return chosen
