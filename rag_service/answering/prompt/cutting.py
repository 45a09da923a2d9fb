"""A part of a passage that is too long for a prompt: around what it was found for."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace

from rag_service.domain import Hit
from rag_service.language.words import count_tokens, word_forms

# A sentence, a line or, where there are none so short, some thirty words.
_PIECE = re.compile(r".{1,200}?(?:[.!?。！？][\"”»)]?\s+|\n+|\Z)|.{1,200}(?:(?<=\s)|(?=\s)|\Z)|.{1,200}", re.DOTALL)


def cut_passage(hit: Hit, weights: Mapping[str, float], room: int, count: Callable[[Hit], int]) -> Hit | None:
    """Return the part of a passage that holds most of a question's words, as large as there is room for.

    It is a slice of the stored text, as the whole is, so that citations of it point there. None: not even a piece fits.

    Args:
        weights: index term of the question → weight; without any in the passage, its beginning is taken.
        room: in tokens.
        count: tokens of a part as it is rendered.
    """
    pieces = [(found.start(), found.end()) for found in _PIECE.finditer(hit.chunk.text)]
    text = hit.chunk.text
    tokens = [count_tokens(text[start:end]) for start, end in pieces]
    held = [weight_held(text[start:end], weights) for start, end in pieces]
    if not pieces:
        return None
    first = last = held.index(max(held))
    left = room - tokens[first]
    grows = True
    while grows:
        grows = False
        for at in (last + 1, first - 1):  # what follows explains more often than what stands before
            if 0 <= at < len(pieces) and tokens[at] <= left:
                first, last, left, grows = min(first, at), max(last, at), left - tokens[at], True
    while True:  # the sum leaves out what is rendered around the text
        part = _slice(hit, pieces[first][0], pieces[last][1])
        if count(part) <= room:
            return part
        if first == last:
            return None
        first, last = (first, last - 1) if held[last] <= held[first] else (first + 1, last)


def weight_held(text: str, weights: Mapping[str, float]) -> float:
    """Return how much of the question's weight a text holds."""
    held = word_forms(text)
    return sum(weight for term, weight in weights.items() if term in held)


def _slice(hit: Hit, start: int, end: int) -> Hit:
    chunk = hit.chunk
    first, last = chunk.start + start, chunk.start + end
    spans = tuple(span for span in chunk.spans if span.start < last and span.end > first)
    return replace(hit, chunk=replace(chunk, text=chunk.text[start:end], start=first, end=last, spans=spans))
