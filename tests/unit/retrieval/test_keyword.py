"""The keyword retriever over a JSON file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_service.domain import Filters, Identity
from rag_service.errors import DefinitionError, InputError, NotFoundError
from rag_service.indices import IndexDefinition, load_index
from rag_service.retrieval.found import Found
from rag_service.retrieval.keyword import KeywordRetriever
from rag_service.retrieval.knowledge_base import (
    CORPUS_ID,
    PASSAGE_CHARS,
    Entry,
    KnowledgeBase,
    cut_passages,
    document_id,
    load_knowledge_base,
)
from rag_service.retrieval.question import Question

SOMEBODY = Identity(user_id=UUID(int=5))
ENTRIES: list[dict[str, Any]] = [
    {"id": "leave", "title": "Leave policy", "text": "Employees receive 25 days of vacation per year.", "source": "HR",
     "tags": ["leave", "staff"], "fileName": "Leave.md", "updatedAt": "2026-01-31"},
    {"id": "travel", "title": "Travel policy", "text": "The limit for travel is 300 euros a day.", "source": "Finance",
     "tags": ["staff"], "fields": {"plan": "gold"}},
    {"id": "padron", "title": "Empadronamiento", "text": "Para empadronarse se pide el DNI y el contrato de alquiler.",
     "territory": "Andalucía"},
]  # fmt: skip


@pytest.fixture
def index() -> IndexDefinition:
    return load_index("general")


@pytest.fixture
def retriever(index: IndexDefinition) -> KeywordRetriever:
    return KeywordRetriever(KnowledgeBase.model_validate({"documents": ENTRIES}), index)


async def search(retriever: KeywordRetriever, question: str, **filters: Any) -> Found:
    return await retriever.search(Question(question, identity=SOMEBODY, filters=Filters(**filters), candidates=5))


def titles(retrieval: Found) -> list[str]:
    return [hit.chunk.document.title for hit in retrieval.hits]


async def test_coverage_does_not_fall_with_the_length_of_an_entry(index: IndexDefinition) -> None:
    words = " ".join(f"other{number}x" for number in range(60))
    texts = {"short": "Parking permit.", "long": f"Parking permit. {words}", "other": "Leave."}
    entries = [{"id": name, "title": name, "text": text, "language": "en"} for name, text in texts.items()]
    retriever = KeywordRetriever(KnowledgeBase.model_validate({"documents": entries}), index)
    short, long = (await search(retriever, "parking permit")).hits
    assert short.scores.coverage == pytest.approx(long.scores.coverage)
    assert short.scores.bm25 is not None
    assert long.scores.bm25 is not None
    assert short.scores.bm25 > long.scores.bm25


async def test_a_question_is_answered_as_readily_from_a_handful_of_entries_as_from_many(index: IndexDefinition) -> None:
    """Words that most of few entries hold weigh little beside one that none holds."""
    found = {}
    for others in (2, 200):
        texts = ["Parking permits cost ten euros a month.", *(f"Parking is near gate {n}." for n in range(others))]
        entries = [{"id": str(n), "title": f"Page {n}", "text": text, "language": "en"} for n, text in enumerate(texts)]
        retriever = KeywordRetriever(KnowledgeBase.model_validate({"documents": entries}), index)
        found[others] = (await search(retriever, "what do parking permits cost for visitors")).hits[0].scores.relevance
    assert found[2] >= 0.95 * found[200]


async def test_the_passage_that_answers_comes_first_with_its_scores(retriever: KeywordRetriever) -> None:
    retrieval = await search(retriever, "How many days of vacation do employees receive?")
    best = retrieval.hits[0]
    assert best.chunk.document.title == "Leave policy"
    assert best.scores.dense is None
    assert best.scores.coverage is not None and best.scores.coverage > 0.4
    assert best.scores.relevance > 0.9
    assert retrieval.plan.language == "en"
    assert set(retrieval.timings_ms) == {"lexical"}


async def test_accents_and_inflections_do_not_matter(retriever: KeywordRetriever) -> None:
    assert titles(await search(retriever, "¿Qué contratos de alquiler se piden para el empadronamiento?"))[0] == (
        "Empadronamiento"
    )


async def test_what_shares_no_word_is_not_found(retriever: KeywordRetriever) -> None:
    assert (await search(retriever, "Who painted the chapel ceiling?")).hits == ()


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ({"source": "HR"}, {"Leave policy"}),
        ({"tags": ("staff",)}, {"Leave policy", "Travel policy"}),
        ({"tags": ("staff", "leave")}, {"Leave policy"}),
        ({"file_name": "leave.MD"}, {"Leave policy"}),
        ({"document_ids": (document_id("travel"),)}, {"Travel policy"}),
        ({"corpus_ids": (CORPUS_ID,)}, {"Leave policy", "Travel policy"}),
        ({"corpus_ids": (UUID(int=1),)}, set()),
        ({"fields": {"plan": "gold"}}, {"Leave policy", "Travel policy"}),
        ({"fields": {"plan": "silver"}}, {"Leave policy"}),
        ({"chunk_types": ("rule",)}, set()),
    ],
)
async def test_filters_restrict_as_they_do_in_the_database(
    retriever: KeywordRetriever, filters: dict[str, Any], found: set[str]
) -> None:
    assert set(titles(await search(retriever, "vacation days and travel limit a day", **filters))) == found


@pytest.mark.parametrize("filters", [{"corpus_ids": (CORPUS_ID, UUID(int=1))}, {"document_ids": (UUID(int=1),)}])
async def test_ids_that_must_exist_are_looked_for(retriever: KeywordRetriever, filters: dict[str, Any]) -> None:
    with pytest.raises(NotFoundError, match=f"{UUID(int=1)} that can be searched"):
        await search(retriever, "vacation days", must_exist=True, **filters)


async def test_a_field_that_no_entry_has_is_refused(retriever: KeywordRetriever) -> None:
    with pytest.raises(InputError, match="no filter field 'colour'") as caught:
        await search(retriever, "vacation days", must_exist=True, fields={"colour": "red"})
    assert caught.value.field == "fields"
    assert titles(await search(retriever, "vacation days", must_exist=True, fields={"plan": "gold"}))


async def test_a_document_of_another_territory_is_left_out(retriever: KeywordRetriever) -> None:
    question = "contrato de alquiler para empadronarse"
    assert titles(await search(retriever, question, territory="Cataluña")) == []
    assert titles(await search(retriever, question, territory="Andalucía")) == ["Empadronamiento"]


# -- passages


@given(st.lists(st.text(alphabet="ab é\n", min_size=1, max_size=60), min_size=1, max_size=40))
def test_passages_are_exact_slices_that_leave_out_only_blanks(parts: list[str]) -> None:
    text = "\n\n".join(parts)
    if not text.strip():
        return
    chunks = list(cut_passages(Entry(id="x", title="X", text=text)))
    end = 0
    for number, chunk in enumerate(chunks):
        assert chunk.index == number
        assert chunk.text == text[chunk.start : chunk.end]
        assert not text[end : chunk.start].strip()
        assert all(chunk.start <= span.start < span.end <= chunk.end for span in chunk.spans)
        end = chunk.end
    assert not text[end:].strip()


def test_long_documents_are_cut_at_paragraphs() -> None:
    paragraph = "A rule that is explained at some length. " * 20
    chunks = list(cut_passages(Entry(id="x", title="X", text="\n\n".join([paragraph] * 9))))
    assert len(chunks) > 2
    assert all(len(chunk.text) <= PASSAGE_CHARS for chunk in chunks)
    assert [span.location.paragraph for chunk in chunks for span in chunk.spans] == list(range(1, 10))


# -- the file


def write(folder: Path, content: Any) -> Path:
    file = folder / "knowledge.json"
    file.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return file


def test_a_good_file_is_loaded(tmp_path: Path) -> None:
    assert len(load_knowledge_base(write(tmp_path, {"documents": ENTRIES})).documents) == 3


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('{"documents": [\n{"id": 1,,}]}', r"knowledge\.json:2: is no valid JSON"),
        ({"documents": []}, "documents: .*at least 1 item"),
        ([], r"knowledge\.json: .*"),
        ({"documents": [{"id": "a", "title": "A"}]}, r"documents\[1\] \(a\) text: is missing; add it"),
        ({"documents": [{"id": "a", "title": "A", "text": " "}]}, r"documents\[1\] \(a\) text: must not be empty"),
        ({"documents": [{"id": "a", "title": "A", "text": "x", "tag": "y"}]}, r"\(a\) tag: unknown key"),
        ({"documents": [{"id": "a", "title": "A", "text": "x", "language": "de"}]}, r"\(a\) language:"),
        ({"documents": [{"id": "a", "title": "A", "text": "x", "updatedAt": "soon"}]}, r"\(a\) updatedAt:"),
        ({"documents": ["a"]}, r"documents\[1\] "),
        ({"documents": [ENTRIES[0], ENTRIES[1], ENTRIES[0]]}, r"documents\[3\] has the id 'leave' of documents\[1\]"),
        ('{"documents": ' + "[" * 100_000, "is nested too deep|is no valid JSON"),
    ],
)
def test_a_wrong_file_is_named_with_its_entry_and_the_mend(tmp_path: Path, content: Any, said: str) -> None:
    with pytest.raises(DefinitionError, match=said) as caught:
        load_knowledge_base(write(tmp_path, content))
    assert "knowledge.json" in caught.value.message
    assert caught.value.field == "RAG_KNOWLEDGE_BASE_PATH"


def test_no_file_names_the_setting(tmp_path: Path) -> None:
    with pytest.raises(DefinitionError, match="RAG_KNOWLEDGE_BASE_PATH"):
        load_knowledge_base(None)
    with pytest.raises(DefinitionError, match="cannot be read"):
        load_knowledge_base(tmp_path / "missing.json")
