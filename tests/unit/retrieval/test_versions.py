"""Documents that are found in several versions: which of them a question asks for."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from uuid import UUID

import pytest

from rag_service.domain import DocumentRef
from rag_service.retrieval.versions import ask_versions


def document(name: str, number: int, dated: date | None = None, corpus: int = 0) -> DocumentRef:
    return DocumentRef(
        id=UUID(int=number),
        corpus_id=UUID(int=corpus),
        title=name,
        file_name=name,
        source=None,
        tags=(),
        content_hash=f"hash-{number}",
        updated_at=datetime(2026, 1, 1, tzinfo=UTC),
        dated=dated,
    )


FOUND = [document("fees 2023.md", 1), document("fees 2024.md", 2), document("fees 2025.md", 3), document("map.md", 4)]


@pytest.mark.parametrize(
    ("question", "kept"),
    [
        ("What is the fee?", {3, 4}),
        ("What was the fee in 2023?", {1, 4}),
        ("What was the fee in 2029?", {3, 4}),  # the last before it
        ("What was the fee in 1999?", {1, 2, 3, 4}),  # none is so old
        ("What was the old fee?", {1, 2, 4}),
        ("How did the fee change?", {1, 2, 3}),
        ("What was the fee in 2023 and in 2025?", {1, 3}),
    ],
)
def test_the_version_that_the_question_asks_for_stays(question: str, kept: set[int]) -> None:
    asked = ask_versions(question, FOUND)
    assert asked is not None
    assert {found.id.int for found in FOUND} - {other.int for other in asked.others} == kept


@pytest.mark.parametrize(
    "found",
    [
        [document("fees 2023.md", 1), document("map 2024.md", 2)],  # other names
        [document("fees 2023.md", 1), document("fees 2024.md", 2, corpus=1)],  # somebody else's
        [document("fees.md", 1), document("fees.txt", 2)],  # nothing tells which is newer
        [document("minutes 2024-03-14.md", 1), document("minutes 2024-04-11.md", 2)],  # a series
        [document("fees 2023.md", 1)],
    ],
    ids=["names", "corpora", "order", "series", "one"],
)
def test_other_documents_are_no_versions(found: list[DocumentRef]) -> None:
    assert ask_versions("What is the fee?", found) is None


def test_what_holds_from_tomorrow_is_not_in_force() -> None:
    tomorrow = datetime.now(UTC).date() + timedelta(days=1)
    found = [document("fees.md", 1, date(2020, 1, 1)), document("fees new.md", 2, tomorrow)]
    asked = ask_versions("What is the fee?", found)
    assert asked is not None and asked.others == {UUID(int=2)}
    asked = ask_versions(f"What is the fee in {tomorrow.year}?", found)
    assert asked is not None and asked.others == {UUID(int=1)}


def test_the_text_tells_which_is_newer_before_the_name_does() -> None:
    found = [document("fees v9.md", 1, date(2020, 1, 1)), document("fees v3.md", 2, date(2024, 1, 1))]
    asked = ask_versions("What is the fee?", found)
    assert asked is not None and asked.others == {UUID(int=1)}
