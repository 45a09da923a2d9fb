"""A policy in two versions, from the files to the answers."""

from __future__ import annotations

from rag_service.components import Components
from rag_service.domain import LOCAL_ADMIN, Filters
from rag_service.retrieval.question import Question
from tests.integration.answers.conftest import Ingest

OLD = "# Travel policy\n\nValid from 1 January 2023.\n\nDinner on a business trip is paid up to 24 euros.\n"
NEW = (
    "# Travel policy\n\nIn force from 1 April 2025, replaces that of 2023.\n\n"
    "Dinner on a business trip is paid up to 31 euros.\n"
)


async def test_a_question_is_answered_from_the_version_that_it_asks_for(service: Components, ingest: Ingest) -> None:
    old = await ingest(OLD, "travel policy (old).md")
    await ingest(NEW, "travel_policy.md")

    async def ask(question: str, **more: object) -> str:
        query = Question(question, identity=LOCAL_ADMIN, threshold=0.0, **more)  # type: ignore[arg-type]
        return (await service.engine.answer(query)).text

    now = await ask("How much is paid for dinner on a business trip?")
    assert "31 euros" in now and "24 euros" not in now
    before = await ask("How much was paid for dinner on a business trip in 2023?")
    assert "24 euros" in before and "31 euros" not in before
    both = await ask("How did what is paid for dinner on a business trip change?")
    assert "31 euros" in both and "24 euros" in both
    chosen = await ask("How much is paid for dinner?", filters=Filters(document_ids=(old.document_id,)))
    assert "24 euros" in chosen
    found = await service.engine.search(Question("How much is dinner?", identity=LOCAL_ADMIN, threshold=0.0))
    assert {hit.chunk.document.file_name for hit in found.passages} == {"travel policy (old).md", "travel_policy.md"}
