"""Marked facts of every format are found in the stored text, with the right place and without wrong labels."""

from __future__ import annotations

import pytest

from rag_service.domain import Location, ParsedDocument
from rag_service.readers.parse import parse
from tests.unit.readers.corpus import make_corpus
from tests.unit.readers.corpus.sample import Sample

CORPUS = make_corpus()


def find(document: ParsedDocument, fact: str) -> list[Location]:
    """Places of all occurrences of a fact: those of the last span in each, its value."""
    found = []
    at = document.text.find(fact)
    while at >= 0:
        end = at + len(fact.rstrip())
        found += [span.location for span in document.spans if span.start < end <= span.end]
        at = document.text.find(fact, at + 1)
    return found


def missing_facts(sample: Sample) -> list[str]:
    document = parse(sample.data, file_name=sample.name)
    missing = []
    for fact, fields in sample.facts.items():
        places = find(document, fact)
        if not any(all(getattr(place, key) == value for key, value in fields.items()) for place in places):
            missing.append(f"{sample.name}: {fact!r} should be at {fields}, is at {places}")
    return missing


@pytest.mark.parametrize("format", sorted({sample.format for sample in CORPUS}))
def test_every_fact_is_found_with_its_place(format: str) -> None:
    samples = [sample for sample in CORPUS if sample.format == format]
    missing = [fact for sample in samples for fact in missing_facts(sample)]
    assert not missing, "\n".join(missing)


@pytest.mark.parametrize("sample", CORPUS, ids=[sample.name for sample in CORPUS])
def test_nothing_is_labelled_wrongly_and_no_furniture_is_read(sample: Sample) -> None:
    text = parse(sample.data, file_name=sample.name).text
    assert [wrong for wrong in sample.wrong if wrong in text] == []


@pytest.mark.parametrize("sample", CORPUS, ids=[sample.name for sample in CORPUS])
def test_the_format_is_told_by_the_content(sample: Sample) -> None:
    """Text formats without marks of their own need their name."""
    if sample.format in ("csv", "markdown", "text"):
        return
    named = parse(sample.data, file_name=sample.name)
    assert parse(sample.data, file_name="upload").media_type == named.media_type
