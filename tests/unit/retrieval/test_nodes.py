"""What postprocessors see of a passage, and models do not."""

from __future__ import annotations

from dataclasses import replace

from llama_index.core.schema import MetadataMode

from rag_service.domain import Location, Span
from rag_service.retrieval.query import to_node
from tests.unit.api.samples import HIT


def test_postprocessors_see_tags_fields_page_and_dates_and_models_do_not() -> None:
    page = Span(start=HIT.chunk.start, end=HIT.chunk.end, location=Location(page=7))
    document = replace(HIT.chunk.document, tags=("draft",), language="fr")
    chunk = replace(HIT.chunk, document=document, spans=(page,), metadata={"year": "2024"})
    node = to_node(replace(HIT, chunk=chunk)).node
    seen = {key: node.metadata[key] for key in ("tags", "language", "page_label", "year", "updated_at")}
    assert seen == {
        "tags": ["draft"], "language": "fr", "page_label": "7", "year": "2024",
        "updated_at": document.updated_at.isoformat(),
    }  # fmt: skip
    for mode in (MetadataMode.LLM, MetadataMode.EMBED):
        shown = node.get_content(mode)
        assert document.title in shown
        assert not [key for key in (*seen, "document_id", "corpus_id", "chunk_index") if f"{key}:" in shown]
