"""Files that are no export, were changed, or were written by an enemy: refused, whatever is wrong with them."""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_service.domain import Location, Span
from rag_service.errors import ArchiveError, ArchiveTooLargeError, ArchiveVersionError
from rag_service.ingest.transfer.archive import open_unnamed
from rag_service.ingest.transfer.contents import ChunkForm, NodeForm, Renamed, divide_long
from rag_service.ingest.transfer.exporting import without_secrets
from rag_service.ingest.transfer.reading import Part, read_parts
from tests.transfer_files import Change, changed, edit, pack

ORIGINAL, TEXT = b"Llamas hum.", "Llamas hum."
DOCUMENT, ORIGINAL_NAME = "documents/000001/document.json", "documents/000001/original"
CHUNKS, TABLE, ROWS = (
    f"documents/000001/{name}" for name in ("chunks-00001.jsonl", "table-0001.json", "table-0001-rows-00001.json")
)
NODE: Mapping[str, Any] = {
    "id": "d:0", "metadata": {"language": "en"}, "hidden_from_embedding": [], "hidden_from_llm": [],
    "text_template": "{metadata_str}\n\n{content}", "metadata_template": "{key}: {value}", "metadata_separator": "\n",
    "related": {"SOURCE": [{"id": "d"}]},
}  # fmt: skip
ROW = [1, True, False, "", None, [["Llama", "llama", None, 0], ["1.5", "1.5", "1.5", 3]]]
MEMBERS: Mapping[str, Any] = {
    "manifest.json": {
        "format": "rag-service corpus", "version": 1, "written_at": "2026-01-01T00:00:00Z", "written_by": "0",
        "embedding": {"model": "m", "dimension": 2},
        "counts": {"documents": 1, "originals": 1, "chunks": 1, "tables": 1},
    },
    "corpus.json": {
        "name": "barn", "kind": "personal", "index": "general", "active": True, "ttl_seconds": None, "shared": False,
        "groups": [], "sources": [],
    },
    DOCUMENT: {
        "id": "d", "name": "a.txt", "title": "a", "file_name": "a.txt", "source": None, "tags": [], "language": "en",
        "media_type": "text/plain", "content_hash": hashlib.sha256(ORIGINAL).hexdigest(), "fingerprint": "f",
        "fields": {}, "metadata": {}, "territory": None, "dated": None, "size_bytes": 11, "expires_at": None,
        "created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-01T00:00:00Z", "has_original": True, "chunks": 1,
        "tables": 1,
    },
    ORIGINAL_NAME: ORIGINAL,
    "documents/000001/text.txt": TEXT.encode(),
    CHUNKS: {
        "index": 0, "start": 0, "end": 11, "text": None, "spans": [[0, 11, {"page": 1}]],
        "embedding": base64.b64encode(b"\0<\0<").decode(), "node": NODE,
    },
    TABLE: {
        "number": 0, "sheet": None, "caption": "", "row_count": 1, "unit": "", "by_period": False, "page": None,
        "columns": [{"letter": "A", "name": "x", "kind": "text"}, {"letter": "B", "name": "y", "kind": "number"}],
        "texts": [{"llama": "Llama"}, {}],
    },
    ROWS: [ROW],
}  # fmt: skip
FILE = pack(
    (name, content if isinstance(content, bytes) else msgspec.json.encode(content)) for name, content in MEMBERS.items()
)


def read(data: bytes, **limits: Any) -> list[Part]:
    return list(read_parts(io.BytesIO(data), **{"max_document": 1000, **limits}))


def test_a_whole_file_is_read() -> None:
    assert len(read(FILE)) == 6


WORDS = "Llamas hum at night. "


@pytest.mark.parametrize("text", [WORDS * 2_400, "humming" * 7_000, WORDS * 900 + "x" * 50_000], ids=len)
def test_a_chunk_of_any_length_is_read_as_parts_that_a_question_can_bear(text: str) -> None:
    chunks = [
        ChunkForm(
            index=number, start=start, end=end, text=None, spans=spans, embedding=b"vector",
            node=msgspec.convert({**NODE, "id": f"d:{number}"}, NodeForm),
        )
        for number, (start, end, spans) in enumerate(
            [
                (0, 11, ()),
                (11, len(text), (Span(start=0, end=50, location=Location(page=1)),
                                 Span(start=len(text) - 9, end=len(text), location=Location(page=2)))),
                (len(text) - 5, len(text), ()),
            ]
        )
    ]  # fmt: skip
    divided = divide_long(chunks, text, more=4)
    assert [part.index for part in divided] == list(range(4, 4 + len(divided)))
    assert len({part.node.id for part in divided}) == len(divided) > 4
    assert (divided[0].node.id, divided[1].node.id, divided[-1].node.id) == ("d:0", "d:1", "d:2")
    parts = divided[1:-1]
    assert "".join(text[part.start : part.end] for part in parts) == text[11:]
    assert max(part.length for part in parts) <= 20_000
    assert {part.embedding for part in divided} == {b"vector"}
    assert [[span.location.page for span in part.spans] for part in (parts[0], parts[-1])] == [[1], [2]]
    if "." in text:
        assert text[parts[0].end - 1] == " "


def test_parts_of_a_chunk_whose_text_is_not_the_documents_stand_where_it_stands() -> None:
    chunk = ChunkForm(
        index=0,
        start=0,
        end=9,
        text="other words " * 3_000,
        spans=(),
        embedding=b"",
        node=msgspec.convert(NODE, NodeForm),
    )
    divided = divide_long([chunk], TEXT, more=0)
    assert "".join(part.text or "" for part in divided) == chunk.text
    assert {(part.start, part.end) for part in divided} == {(0, 9)}


@given(st.integers(0, len(FILE) - 1), st.integers(1, 255))
def test_no_byte_can_be_changed(place: int, difference: int) -> None:
    data = bytearray(FILE)
    data[place] ^= difference
    with pytest.raises(ArchiveError):
        read(bytes(data))


@given(st.integers(0, len(FILE) - 1))
def test_no_part_can_be_missing_at_the_end(size: int) -> None:
    with pytest.raises(ArchiveError, match=r"not complete|not an export"):
        read(FILE[:size])


def node(**values: Any) -> Change:
    return edit(CHUNKS, node={**NODE, **values})


def row(place: int, value: Any) -> Change:
    return put(ROWS, msgspec.json.encode([[*ROW[:place], value, *ROW[place + 1 :]]]))


def put(name: str, content: bytes) -> Change:
    return lambda members: members.update({name: content})


def drop(name: str) -> Change:
    return lambda members: members.pop(name) and None


def count(**counts: int) -> Change:
    return edit("manifest.json", counts={**MEMBERS["manifest.json"]["counts"], **counts})


CHANGES: Mapping[str, Change] = {
    "another format": edit("manifest.json", format="backup"),
    "no dimension": edit("manifest.json", embedding={"model": "m", "dimension": 0}),
    "a manifest that is no JSON": put("manifest.json", b"{"),
    "JSON without an end of nesting": edit(DOCUMENT, metadata=msgspec.Raw(b'{"a":' + b"[" * 9000 + b"]" * 9000 + b"}")),
    "a number that no JSON holds": edit(DOCUMENT, metadata=msgspec.Raw(b'{"a":NaN}')),
    "half a surrogate": edit(DOCUMENT, title=msgspec.Raw(b'"\\ud800"')),
    "a document too few": count(documents=2),
    "a document too many": count(documents=0),
    "an original too few": count(originals=2),
    "a chunk too few": count(chunks=2),
    "a table too few": count(tables=2),
    "a negative count": count(chunks=-1),
    "an unknown kind of corpus": edit("corpus.json", kind="everybody's"),
    "no original": drop(ORIGINAL_NAME),
    "another original": put(ORIGINAL_NAME, b"Llamas hop."),
    "an extra member": put("documents/000001/more", b""),
    "a member with an absolute name": put("/etc/passwd", b""),
    "a member above the folder": put("documents/../../passwd", b""),
    "a hash that is none": edit(DOCUMENT, content_hash="../../etc/passwd"),
    "chunks of a document that has no text": edit(DOCUMENT, fingerprint=""),
    "a text that is not UTF-8": put("documents/000001/text.txt", b"\xff"),
    "no chunks": put(CHUNKS, b""),
    "a chunk behind the text": edit(CHUNKS, end=12),
    "a chunk before the text": edit(CHUNKS, start=-1),
    "a chunk that ends before it starts": edit(CHUNKS, start=5, end=4),
    "a chunk without a vector": edit(CHUNKS, embedding="?"),
    "a place that is none": edit(CHUNKS, spans=[[0, 11, {"page": "first"}]]),
    "a place without an end": edit(CHUNKS, spans=[[0]]),
    "places that are none": edit(CHUNKS, spans=[7]),
    "words without places": edit(CHUNKS, spans=[[0, 11, {}, "AAAA"]]),
    "a template that asks for gigabytes": node(text_template="{content:>9999999999}"),
    "a template that looks around": node(text_template="{content.__class__}"),
    "a template that multiplies": node(metadata_template="{value}" * 50),
    "a template for each of many keys": node(
        metadata={str(key): "" for key in range(3_000)}, metadata_template="{key}" + "." * 490
    ),
    "chunks that repeat the text again and again": lambda members: members.update(
        {
            CHUNKS: b"\n".join([members[CHUNKS]] * 17),
            DOCUMENT: msgspec.json.encode(MEMBERS[DOCUMENT] | {"chunks": 17}),
            "manifest.json": msgspec.json.encode(
                MEMBERS["manifest.json"] | {"counts": {"documents": 1, "originals": 1, "chunks": 17, "tables": 1}}
            ),
        }
    ),
    "a moment of no time zone": edit(DOCUMENT, expires_at="2026-01-01T00:00:00"),
    "a moment before the first year": edit(DOCUMENT, created_at="0001-01-01T00:00:00+12:00"),
    "a moment after the last year": edit(DOCUMENT, expires_at="9999-12-31T23:59:00-12:00"),
    "a template that is broken": node(text_template="{content"),
    "a relationship that there is not": node(related={"FRIEND": [{"id": "d"}]}),
    "a relationship to nobody": node(related={"SOURCE": []}),
    "a language that is a list": node(metadata={"language": ["en"]}),
    "a table without columns": edit(TABLE, columns=[], texts=[]),
    "a table without the texts of a column": edit(TABLE, texts=[{}]),
    "a column of an unknown kind": edit(TABLE, columns=[{"letter": "A", "name": "x", "kind": "picture"}], texts=[{}]),
    "no rows": put(ROWS, b"[]"),
    "a row without a cell": row(5, [None]),
    "a row that is not one": put(ROWS, b"[1]"),
    "a number that is infinite": row(5, [None, ["1", "1", "Infinity", 0]]),
    "a number that nobody can reckon with": row(5, [None, ["1", "1", "1e999999", 0]]),
    "a number that is none": row(5, [None, ["1", "1", "one", 0]]),
    "a cell behind the text": row(5, [None, ["1", "1", "1", 12]]),
}  # fmt: skip


@pytest.mark.parametrize("case", CHANGES)
def test_a_file_with_right_checksums_and_wrong_content_is_refused(case: str) -> None:
    with pytest.raises(ArchiveError):
        read(changed(FILE, CHANGES[case]))


def tar(form: int = tarfile.USTAR_FORMAT, **attributes: Any) -> bytes:
    """The file with a header of this kind in front."""
    entry = tarfile.TarInfo("manifest.json")
    for name, value in attributes.items():
        setattr(entry, name, value)
    return entry.tobuf(form) + FILE


OTHERS: Mapping[str, Callable[[], bytes]] = {
    "an empty file": lambda: b"",
    "zeros": lambda: bytes(10_240),
    "another format": lambda: b"%PDF-1.7\n" * 200,
    "a compressed export": lambda: gzip.compress(FILE),
    "a file with something behind it": lambda: FILE + b"x",
    "a file with another one behind it": lambda: FILE + FILE,
    "a link": lambda: tar(type=tarfile.SYMTYPE, linkname="/etc/passwd"),
    "a hard link": lambda: tar(type=tarfile.LNKTYPE, linkname="/etc/passwd"),
    "a folder": lambda: tar(type=tarfile.DIRTYPE),
    "a device": lambda: tar(type=tarfile.CHRTYPE, devmajor=1, devminor=5),
    "a long name": lambda: tar(tarfile.GNU_FORMAT, name="x" * 200),
    "an extended header": lambda: tar(tarfile.PAX_FORMAT, pax_headers={"size": "99999999999"}),
    "a file of a user": lambda: tar(uid=7, uname="root"),
    "a program": lambda: tar(mode=0o4755),
    "a size below zero": lambda: tar(tarfile.GNU_FORMAT, size=-512),
    "a size of 2^60": lambda: tar(tarfile.GNU_FORMAT, size=2**60),
    "a size without its content": lambda: tar(size=2**20)[:512],
}


@pytest.mark.parametrize("case", OTHERS)
def test_other_files_are_refused(case: str) -> None:
    with pytest.raises(ArchiveError):
        read(OTHERS[case]())


def test_sizes_are_refused_before_anything_of_them_is_read() -> None:
    with pytest.raises(ArchiveTooLargeError, match=r"documents/000001/original has 11 bytes; the limit is 10"):
        read(FILE, max_document=10)
    with pytest.raises(ArchiveTooLargeError, match=r"manifest\.json has 8,000,000,000 bytes"):
        read(tar(size=8_000_000_000))


def test_without_a_folder_of_its_own_temporary_files_are_where_the_system_has_them(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")  # as root, nothing else cannot be written
    with open_unnamed(tmp_path / "file" / "folder") as file:
        file.write(b"x")
        file.seek(0)
        assert file.read() == b"x"


def test_another_version_is_told() -> None:
    for version in (0, 2):
        with pytest.raises(ArchiveVersionError, match=f"has version {version} of the format; this service reads 1"):
            read(changed(FILE, edit("manifest.json", version=version, counts="another shape")))


def test_ids_of_the_file_are_not_taken_over() -> None:
    (chunk,) = next(part for part in read(FILE) if isinstance(part, list))
    assert isinstance(chunk, ChunkForm)
    corpus_id, document_id = UUID(int=1), UUID(int=2)
    metadata = {**chunk.node.metadata, "rag_corpus_id": "forged", "rag_document_id": "forged"}
    forged = msgspec.structs.replace(chunk, node=msgspec.structs.replace(chunk.node, metadata=metadata))
    made = Renamed(before="d", corpus_id=corpus_id, document_id=document_id).make_node(forged, TEXT, [1.0, 1.0])
    assert (made.metadata["rag_corpus_id"], made.metadata["rag_document_id"]) == (str(corpus_id), str(document_id))
    assert made.node_id == f"{document_id}:0"
    assert made.ref_doc_id == str(document_id)
    assert made.get_content() == TEXT


@pytest.mark.parametrize(
    ("target", "exported"),
    [
        ("https://user:secret@example.org:8443/a/b?token=secret#secret", "https://example.org:8443/a/b"),
        ("s3://key:secret@bucket/folder", "s3://bucket/folder"),
        ("/srv/papers?", "/srv/papers?"),
    ],
)
def test_a_source_is_exported_without_its_secrets(target: str, exported: str) -> None:
    assert without_secrets(target) == exported
