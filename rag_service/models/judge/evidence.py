"""The part of a passage that a judge is shown."""

from __future__ import annotations


def extract(passage: str, evidence: str, size: int) -> str:
    """At most about `size` characters of a passage around the evidence, cut at words; the whole passage if it fits.

    Evidence that is not in the passage as it stands is shown before its beginning.
    """
    if len(passage) <= size:
        return passage if evidence in passage else f"{evidence}\n\n{passage}"
    place = passage.find(evidence)
    if place < 0:
        return f"{evidence}\n\n{_cut(passage, 0, max(0, size - len(evidence)))}".strip()
    if len(evidence) >= size:
        return _cut(passage, place, place + size)
    begin = max(0, min(place - (size - len(evidence)) // 2, len(passage) - size))
    return _cut(passage, begin, begin + size)


def _cut(text: str, start: int, end: int) -> str:
    """Characters [start, end) without the words that the cut goes through."""
    while start > 0 and start < end and not text[start - 1].isspace():
        start += 1
    while end < len(text) and end > start and not text[end].isspace():
        end -= 1
    return text[start:end].strip()
