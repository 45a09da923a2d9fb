"""Names of a question that passages hold in another language or spelling: "Saragosse" for "Zaragoza".

Nothing is known of names: two are taken for one if their letters or their vectors are alike.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from itertools import islice
from typing import Protocol

import numpy as np

from rag_service.domain import Hit
from rag_service.language.words import fold
from rag_service.models.local_runtime import somebody_waits

# Of 45 places with their names in five languages (198), .84 of the pairs are found so, and .13 of names are taken for
# one of ten others; with letters alone .70 and .12. A cosine of .9 finds .89 and takes .33 for others.
_ALIKE_LETTERS = 0.6
_ALIKE_VECTORS = 0.92
_PASSAGES = 3  # that a reply shows at first
_MOST_NAMES = 40  # of passages, 6 ms each
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
    held = list(_read_names(hit.chunk.text for hit in hits[:_PASSAGES]))
    left = [name for name in absent if not any(_has_alike_letters(name, one) for one in held)]
    asked = [name for name in left if not any(map(str.isdigit, name))]
    if embedding is None or not asked or not held:
        return tuple(left)
    with somebody_waits():
        vectors = np.asarray(await embedding.aget_text_embedding_batch([*asked, *held]))
    cosines = vectors[: len(asked)] @ vectors[len(asked) :].T
    alike = {name for name, row in zip(asked, cosines, strict=True) if row.max() >= _ALIKE_VECTORS}
    return tuple(name for name in left if name not in alike)


def _read_names(texts: Iterable[str]) -> Iterable[str]:
    found = dict.fromkeys(word for text in texts for word in _CAPITALISED.findall(text) if word[0].isupper())
    return islice(found, _MOST_NAMES)


def _has_alike_letters(name: str, other: str) -> bool:
    is_code = any(map(str.isdigit, name))
    return not is_code and SequenceMatcher(None, fold(name), fold(other)).ratio() >= _ALIKE_LETTERS
