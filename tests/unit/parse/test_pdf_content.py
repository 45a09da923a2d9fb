"""Content streams come out of the fast reader as pypdf gives them, or are left to it."""

from __future__ import annotations

import io
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pypdf.generic import ByteStringObject, ContentStream, NameObject

from rag_service.ingest.parse import pdf_content
from rag_service.ingest.parse.pdf_content import Operation, read_operations, read_streams_fast


def read_by_pypdf(data: bytes) -> list[Operation] | None:
    """None: it refuses."""
    stream: Any = ContentStream(None, None, "bytes")
    try:
        pdf_content._read_slowly(stream, io.BytesIO(data))
    except Exception:  # noqa: BLE001 - it raises anything
        return None
    operations: list[Operation] = stream._operations
    return operations


def kinds(operations: list[Operation]) -> list[list[type]]:
    """What text extraction asks of operands: strings are bytes, names are not."""
    return [[next(kind for kind in (bytes, str, int, float, list, dict) if isinstance(item, kind)) for item in operands]
            for operands, _ in operations]  # fmt: skip


def test_this_version_of_pypdf_takes_the_reader() -> None:
    assert read_streams_fast()
    stream = ContentStream(None, None, "bytes")
    stream.set_data(b"BT (a) Tj ET")
    assert stream.operations == [([], b"BT"), ([b"a"], b"Tj"), ([], b"ET")]


@pytest.mark.parametrize(
    ("data", "operations"),
    [
        (b"", []),
        (b" 1 0 0 -1 .5 -0.25 cm\r\n", [([1, 0, 0, -1, 0.5, -0.25], b"cm")]),
        (b"/F1 12 Tf(a\\)\\101)Tj", [([NameObject("/F1"), 12], b"Tf"), ([b"a)A"], b"Tj")]),
        (b"[(A)-120(B) <4 1>.5<414>]TJ T*", [([[b"A", -120, b"B", b"A", 0.5, b"A@"]], b"TJ"), ([], b"T*")]),
        (b"/P <</MCID 3 /Lang (en>) /T <FE>>> BDC EMC 1 w", None),
    ],
)
def test_what_a_page_is_made_of_is_read(data: bytes, operations: list[Operation] | None) -> None:
    found = read_operations(data)
    assert found == read_by_pypdf(data)
    assert found is not None
    if operations is not None:
        assert found == operations


@pytest.mark.parametrize(
    "data",
    [
        b"BI /W 1 /H 1 ID x EI Q",
        b"1 0 R Do",
        b"% a comment\nq Q",
        b"[[1] 2] 0 d",
        b"[/A] Tf",
        b"(a (nested) string) Tj",
        b"(not closed Tj",
        b"1-2 w",
        b"[1-2] 0 d",
        b"/A#20B gs",
        b"<</A <</B 1>>>> BDC",
    ],
)
def test_anything_else_is_left_to_pypdf(data: bytes) -> None:
    assert read_operations(data) is None


TOKENS = st.sampled_from(
    [b"1", b"-.5", b"+7.", b"1.2.3", b"--1", b"0 0 R", b"/F1", b"/A#20", b"/", b"(a)", b"(a\\n\\051\\)", b"((b))", b"(",
     b"<41>", b"<4 1 5>", b"<4g>", b"[(A)-3<42>]", b"[1 [2]]", b"[", b"]", b"<</M 1>>", b"<</T <FE>>>", b"<<", b">>",
     b"Tj", b"TJ", b"'", b'"', b"BT", b"R", b"RG", b"T*", b"BI", b"true", b"%", b"\\", b"{", b"\xe9", b"Td12"]
)  # fmt: skip
SPACES = st.sampled_from([b"", b" ", b"\n", b"\r\n", b"\t", b"\x00", b"\x0b", b"\x0c"])


@given(st.lists(st.tuples(TOKENS, SPACES), max_size=12))
def test_no_operation_differs_from_pypdf_s(parts: list[tuple[bytes, bytes]]) -> None:
    data = b"".join(token + space for token, space in parts)
    found = read_operations(data)
    if found is not None:
        expected = read_by_pypdf(data)
        assert found == expected
        assert kinds(found) == kinds(expected)


def test_strings_are_pypdf_s_own() -> None:
    """Text extraction asks them for their bytes."""
    (((literal, digits), _),) = read_operations(b"(a) <62> Tj") or []
    assert isinstance(literal, ByteStringObject)
    assert isinstance(digits, ByteStringObject)


@pytest.mark.parametrize("data", [b"(" * 400_000, b"[" + b"1 " * 400_000, b"<<" + b"(a" * 200_000, b"q " * 500_001])
def test_a_hostile_stream_is_left_to_pypdf_at_once(data: bytes) -> None:
    began = time.monotonic()
    assert read_operations(data) is None
    assert time.monotonic() - began < 3
