"""A line of an image, as text recognition reads it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ReadLine:
    """A line of an image; lengths in pixels, from the top left."""

    text: str
    score: float  # 0..1
    left: float
    right: float
    top: float
    bottom: float
