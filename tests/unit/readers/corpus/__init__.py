"""A corpus of messy files in every format, made by code, with marked facts and their places."""

from __future__ import annotations

from tests.unit.readers.corpus import (
    mail,
    messy_mail,
    messy_sheets,
    messy_slides,
    messy_texts,
    messy_web,
    messy_word,
    office,
    sheets,
    texts,
    web,
)
from tests.unit.readers.corpus.sample import Sample

_FILES = (office, sheets, web, mail, texts)
_MESSY = (messy_word, messy_slides, messy_sheets, messy_web, messy_mail, messy_texts)


def make_corpus() -> list[Sample]:
    """All files."""
    return [sample for part in (*_FILES, *_MESSY) for make in part.MAKERS for sample in make()]
