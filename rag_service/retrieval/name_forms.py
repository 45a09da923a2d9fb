"""Names of a question that passages hold in another language or spelling: "Saragosse" for "Zaragoza".

Nothing is known of names: two are taken for one if their letters or their vectors are alike.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from difflib import SequenceMatcher
from typing import Protocol

import numpy as np

from rag_service.domain import Hit
from rag_service.language.words import fold
from rag_service.models.local_runtime import somebody_waits

# Of 45 places with their names in five languages (198), .84 of the pairs are found so, and .12 of the names are taken
# for one of ten others; with letters alone .70 and .12. A cosine of .9 finds .89 and takes .36 for others.
_ALIKE_LETTERS = 0.6
_ALIKE_VECTORS = 0.92
_PASSAGES = 4  # that are quoted from
_MOST_ASKED = 5  # names of a question
_COMPARED = 10  # names of passages, those with the most alike letters, as measured above: 6 ms each
_CAPITALISED = re.compile(r"(?<!\w)[^\W\d_a-z][^\W\d_]{2,}(?:-[^\W\d_]+)*")


class TextEmbedding(Protocol):
    """What names are compared with; every LlamaIndex embedding is one."""

    async def aget_text_embedding_batch(self, texts: list[str]) -> list[list[float]]:
        """The vectors of texts."""


async def drop_other_forms(
    absent: Sequence[str], hits: Sequence[Hit], embedding: TextEmbedding | None
) -> tuple[str, ...]:
    """Return the names of which the best passages hold no form in another language or spelling.

    Args:
        absent: names that no passage holds as the question writes them.
        hits: best first.
        embedding: the packaged model; None: letters alone are compared.
    """
    held = {name for hit in hits[:_PASSAGES] for name in _CAPITALISED.findall(hit.chunk.text) if name[0].isupper()}
    names = [name for name in absent if not any(map(str.isdigit, name))][:_MOST_ASKED]
    alike = {name for name in names if held and await _is_held(name, held, embedding)}
    return tuple(name for name in absent if name not in alike)


async def _is_held(name: str, held: Collection[str], embedding: TextEmbedding | None) -> bool:
    letters = {other: SequenceMatcher(None, fold(name), fold(other)).ratio() for other in sorted(held)}
    nearest = sorted(letters, key=lambda other: -letters[other])[:_COMPARED]
    if letters[nearest[0]] >= _ALIKE_LETTERS or embedding is None:
        return letters[nearest[0]] >= _ALIKE_LETTERS
    with somebody_waits():
        own, *vectors = np.asarray(await embedding.aget_text_embedding_batch([name, *nearest]))
    return bool(np.max(np.stack(vectors) @ own) >= _ALIKE_VECTORS)
