"""What an import decodes is what is read later: all else is refused with the path of the value."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from rag_service.errors import ArchiveError
from rag_service.ingest.transfer.contents import DocumentForm, check_document, check_rows, decode, decode_chunks
from rag_service.tables.encoding import TableDescription

TEXT = "Llamas sleep in the barn."
NODE: dict[str, Any] = {
    "id": "n", "metadata": {}, "hidden_from_embedding": [], "hidden_from_llm": [], "text_template": "{content}",
    "metadata_template": "{key}: {value}", "metadata_separator": "\n", "related": {},
}  # fmt: skip
CHUNK: dict[str, Any] = {"index": 0, "start": 0, "end": 6, "text": None, "spans": [], "embedding": "", "node": NODE}
DOCUMENT: dict[str, Any] = {
    "id": "d", "name": "d", "title": "", "file_name": None, "source": None, "tags": [], "language": None,
    "media_type": None, "content_hash": "a" * 64, "fingerprint": "f", "fields": {}, "metadata": {}, "territory": None,
    "dated": None, "size_bytes": 1, "expires_at": None, "created_at": "2026-01-01T00:00:00Z",
    "updated_at": "2026-01-01T00:00:00Z", "has_original": False, "chunks": 0, "tables": 0,
}  # fmt: skip
TABLE = TableDescription(
    number=0, sheet=None, caption="", columns=(), row_count=1, unit="", by_period=False, page=None, texts=()
)


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = {"a": [value]}
    return value


def read_chunk(**changes: Any) -> None:
    decode_chunks(msgspec.json.encode({**CHUNK, **changes}), TEXT, "chunks")


def read_document(**changes: Any) -> None:
    check_document(decode(msgspec.json.encode({**DOCUMENT, **changes}), DocumentForm, "document"), "document")


def test_what_an_export_writes_is_read() -> None:
    read_chunk(spans=[[0, 6, {"page": 1, "boxes": [[1, 2, 3, 4]]}]])
    read_document(metadata={"reader_warnings": ["Pictures were left out."], "author": {"name": "Vera"}})
    check_rows(b'[[1,true,false,"",null,[]]]', TABLE, TEXT, "rows")


@pytest.mark.parametrize(
    "spans",
    [
        [[True, True, {}]], [[0, 1]], [["0", 1, {}]], [[0, 1.5, {}]], [[5, 1, {}]], [[-1, 1, {}]], [[0, 2**40, {}]],
        [[0, 1, {"page": "one"}]], [[0, 1, {"page": -1}]], [[0, 1, {"boxes": [[1, 2]]}]], [[0, 1, {}, "no Base64!"]],
        [[0, 1, None]], [None], {}, "abc", [[0, 0, {}]] * 100_001,
    ],
)  # fmt: skip
def test_places_that_could_not_be_read_are_refused(spans: Any) -> None:
    with pytest.raises(ArchiveError, match=r"\$.*spans"):
        read_chunk(spans=spans)


@pytest.mark.parametrize("warnings", [5, {}, "abc", [1, None], [[]], None])
def test_warnings_that_are_no_texts_are_refused(warnings: Any) -> None:
    with pytest.raises(ArchiveError, match=r"\$\.metadata\.reader_warnings"):
        read_document(metadata={"reader_warnings": warnings})


@pytest.mark.parametrize("metadata", [nested(40), {"a": [0] * 10_001}, {str(number): 0 for number in range(10_001)}])
def test_metadata_beyond_all_measure_is_refused(metadata: Any) -> None:
    with pytest.raises(ArchiveError, match=r"\$\.metadata"):
        read_document(metadata=metadata)
    with pytest.raises(ArchiveError, match=r"\$\[0\]\.node\.metadata"):
        read_chunk(node={**NODE, "metadata": metadata})


@pytest.mark.parametrize("tags", [["x"] * 10_001, [1], "x"])
def test_tags_beyond_all_measure_are_refused(tags: Any) -> None:
    with pytest.raises(ArchiveError, match=r"\$\.tags"):
        read_document(tags=tags)


@pytest.mark.parametrize("number", ["٣٤", "1__0_", "NaN", "Infinity", "1e999999", " 1", "1_0", "0x1", ""])
def test_numbers_that_the_database_does_not_read_are_refused(number: str) -> None:
    one = msgspec.structs.replace(TABLE, columns=({"letter": "A"},))  # type: ignore[arg-type]  # its length alone counts
    with pytest.raises(ArchiveError):
        check_rows(msgspec.json.encode([[1, True, False, "", None, [["x", "x", number, 0]]]]), one, TEXT, "rows")


@pytest.mark.parametrize("row", [[2**40, True, False, "", None, []], [1, True, False, "", -1, []]])
def test_numbers_of_rows_that_no_table_has_are_refused(row: list[Any]) -> None:
    with pytest.raises(ArchiveError):
        check_rows(msgspec.json.encode([row]), TABLE, TEXT, "rows")
