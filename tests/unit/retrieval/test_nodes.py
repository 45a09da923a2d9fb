"""What postprocessors and models see of a passage."""

from __future__ import annotations

from dataclasses import replace

from llama_index.core.schema import MetadataMode

from rag_service.api.http.presenters import present_hit
from rag_service.api.http.schemas import PassageBody
from rag_service.client.llama import to_node as of_client
from rag_service.domain import Location, Span
from rag_service.retrieval.query import to_node
from tests.unit.api.samples import HIT


def test_postprocessors_see_all_metadata_language_models_no_ids_and_embedding_models_the_title() -> None:
    page = Span(start=HIT.chunk.start, end=HIT.chunk.end, location=Location(page=7))
    document = replace(HIT.chunk.document, tags=("draft",), language="fr")
    chunk = replace(HIT.chunk, document=document, spans=(page,), metadata={"year": "2024"}, extra={"window": "…"})
    node = to_node(replace(HIT, chunk=chunk)).node
    seen = {key: node.metadata[key] for key in ("tags", "language", "page_label", "year", "updated_at")}
    assert seen == {
        "tags": ["draft"], "language": "fr", "page_label": "7", "year": "2024",
        "updated_at": document.updated_at.isoformat(),
    }  # fmt: skip
    assert node.metadata["window"] == "…"
    hidden = ("document_id", "corpus_id", "chunk_index", "window")
    for_llm, for_embedding = (node.get_content(mode) for mode in (MetadataMode.LLM, MetadataMode.EMBED))
    assert f"title: {document.title}" in for_llm and f"title: {document.title}" in for_embedding
    assert all(f"{key}:" in for_llm for key in seen)
    assert not [key for key in hidden if f"{key}:" in for_llm]
    assert not [key for key in (*hidden, *seen) if f"{key}:" in for_embedding]


def test_what_is_not_known_is_no_line_of_a_prompt() -> None:
    document = replace(HIT.chunk.document, tags=(), dated=None, source=None)
    node = to_node(replace(HIT, chunk=replace(HIT.chunk, document=document, metadata={"year": ""}))).node
    empty = ("tags", "dated", "source", "year")
    assert [node.metadata[key] for key in empty] == [[], None, None, ""]
    for mode in (MetadataMode.LLM, MetadataMode.EMBED):
        assert not [key for key in empty if f"{key}:" in node.get_content(mode)]


def test_the_client_gives_the_same_nodes_as_the_service_sees() -> None:
    page = Span(start=HIT.chunk.start, end=HIT.chunk.end, location=Location(page=7))
    hit = replace(HIT, chunk=replace(HIT.chunk, spans=(page,), metadata={"year": "2024"}, extra={"window": "…"}))
    assert of_client(present_hit(PassageBody, hit)) == to_node(hit)
