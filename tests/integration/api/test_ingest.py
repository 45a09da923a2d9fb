"""Documents over the wire: files as forms, texts as JSON, and everything that is neither."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import httpx
import pytest

from rag_service.errors import DocumentError, EmbeddingError, TooLargeError, UnsupportedMediaError
from tests.integration.api.conftest import Serve, Shared
from tests.integration.api.test_bad_input import assert_problem
from tests.unit.api.samples import DOCUMENT, Script

URL = "/api/ingest"
FILE = {"file": ("informe.txt", b"Hola", "text/plain")}


def multipart(*parts: bytes, boundary: bytes = b"edge", end: bytes = b"--edge--\r\n") -> dict[str, Any]:
    body = b"".join(b"--%b\r\n%b\r\n" % (boundary, part) for part in parts) + end
    return {"content": body, "headers": {"Content-Type": "multipart/form-data; boundary=edge"}}


def part(name: str, value: bytes, extra: str = "", header: str = "") -> bytes:
    return f'Content-Disposition: form-data; name="{name}"{extra}\r\n{header}\r\n'.encode() + value


def test_file_is_ingested_with_its_details(serve: Serve) -> None:
    script = Script()
    data = {"title": "Informe", "source": "ERP", "tags": ["a, b", "c"], "metadata": '{"year": 2024, "draft": null}'}
    response = serve(script).post(URL, files=FILE, data=data)
    assert response.status_code == 201
    document = {"documentId": str(DOCUMENT.id), "outcome": "added", "chunkCount": 2, "warnings": []}
    assert response.json() == document
    document = script.documents[0]
    assert (document.data, document.file_name, document.name) == (b"Hola", "informe.txt", None)
    assert (document.title, document.source, document.tags) == ("Informe", "ERP", ("a", "b", "c"))
    assert document.metadata == {"year": 2024, "draft": None}


def test_file_alone_is_enough(serve: Serve) -> None:
    script = Script()
    assert serve(script).post(URL, files=FILE).status_code == 201
    document = script.documents[0]
    assert (document.title, document.source, document.tags, document.metadata) == (None, None, (), {})


def test_binary_file_arrives_byte_for_byte(serve: Serve) -> None:
    script = Script()
    data = bytes(range(256)) * 3000 + b"\r\n--edge\r\n--"
    serve(script).post(URL, files={"file": ("a.bin", data)})
    assert script.documents[0].data == data


def test_hostile_file_name_is_passed_on_as_it_came(serve: Serve) -> None:
    script = Script()
    head = b'Content-Disposition: form-data; name="file"; filename="../../etc/pass\0wd.txt"\r\n\r\n'
    assert serve(script).post(URL, **multipart(head + b"x")).status_code == 201
    assert script.documents[0].file_name == "../../etc/pass\0wd.txt"  # the pipeline cleans it


def test_text_is_ingested(serve: Serve) -> None:
    script = Script()
    body = {"text": "Hölà", "title": "T", "source": "S", "tags": ["a"], "metadata": {"k": [1]}, "fileName": "n.md"}
    assert serve(script).post(URL, json=body).status_code == 201
    document = script.documents[0]
    assert (document.data, document.file_name, document.name) == ("Hölà".encode(), "n.md", None)
    assert (document.title, document.source, document.tags) == ("T", "S", ("a",))
    assert document.metadata == {"k": [1]}


def test_texts_without_a_file_name_are_named_by_their_content(serve: Serve) -> None:
    script = Script()
    client = serve(script)
    for text in ("one", "two", "one"):
        client.post(URL, json={"text": text, "title": "Same"})
    names = [document.name for document in script.documents]
    assert names[0] == names[2] == f"text-{hashlib.sha256(b'one').hexdigest()[:16]}.txt"
    assert names[1] != names[0]
    assert script.documents[0].file_name == "Same.txt"


BAD_JSON: dict[str, tuple[dict[str, Any], str]] = {
    "no text": ({"title": "a"}, "text"),
    "empty text": ({"text": ""}, "text"),
    "blank text": ({"text": " \n\u200b"}, "text"),
    "text a number": ({"text": 1}, "text"),
    "title too long": ({"text": "a", "title": "x" * 1001}, "title"),
    "title with NUL": ({"text": "a", "title": "\0"}, "title"),
    "too many tags": ({"text": "a", "tags": ["x"] * 51}, "tags"),
    "tag with NUL": ({"text": "a", "tags": ["\0"]}, "tags"),
    "metadata a list": ({"text": "a", "metadata": []}, "metadata"),
    "metadata too deep": ({"text": "a", "metadata": {"a": [[[[[[[[1]]]]]]]]}}, "metadata"),
    "metadata with NUL": ({"text": "a", "metadata": {"a": ["\0"]}}, "metadata"),
    "metadata with a NUL key": ({"text": "a", "metadata": {"a\0": 1}}, "metadata"),
    "metadata with a huge number": ({"text": "a", "metadata": {"a": 10**300}}, "metadata"),
    "metadata too large": ({"text": "a", "metadata": {"a": "x" * 70_000}}, "metadata"),
    "file name with NUL": ({"text": "a", "fileName": "a\0.txt"}, "fileName"),
    "unknown field": ({"text": "a", "corpusId": "x"}, "corpusId"),
}


@pytest.mark.parametrize(("body", "field"), list(BAD_JSON.values()), ids=list(BAD_JSON))
def test_bad_field_of_a_text_is_named(shared: Shared, body: dict[str, Any], field: str) -> None:
    problem = assert_problem(shared.client.post(URL, json=body), 400, "invalid_input")
    assert [error["field"] for error in problem["errors"]] == [field]
    assert shared.script.documents == []


def test_deeply_nested_metadata_is_refused(serve: Serve) -> None:
    raw = b'{"text": "a", "metadata": {"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}}"
    response = serve().post(URL, content=raw, headers={"Content-Type": "application/json"})
    assert "nested too deeply" in assert_problem(response, 400, "invalid_input")["detail"]


FILE_PART = part("file", b"Hola", '; filename="a.txt"')
BAD_FORMS: dict[str, tuple[dict[str, Any], str]] = {
    "no file": ({"data": {"title": "a"}, "files": {"tags": (None, "x")}}, "file"),
    "file without a name": (multipart(part("file", b"Hola")), "file"),
    "two files": ({"files": [("file", ("a", b"1")), ("file", ("b", b"2"))]}, "file"),
    "unknown field": ({"files": FILE, "data": {"corpus": "x"}}, "corpus"),
    "title twice": ({"files": FILE, "data": {"title": ["a", "b"]}}, "title"),
    "title too long": ({"files": FILE, "data": {"title": "x" * 1001}}, "title"),
    "title of 200,000 bytes": ({"files": FILE, "data": {"title": "x" * 200_000}}, "title"),
    "title that is no UTF-8": (multipart(FILE_PART, part("title", b"\xff\xfe")), "title"),
    "too many tags": ({"files": FILE, "data": {"tags": ",".join("x" * 51)}}, "tags"),
    "metadata no JSON": ({"files": FILE, "data": {"metadata": "{"}}, "metadata"),
    "metadata a list": ({"files": FILE, "data": {"metadata": "[]"}}, "metadata"),
    "metadata too deep": ({"files": FILE, "data": {"metadata": '{"a":' + "[" * 30_000}}, "metadata"),
    "source with NUL": ({"files": FILE, "data": {"source": "a\0"}}, "source"),
    "no boundary": ({"content": b"x", "headers": {"Content-Type": "multipart/form-data"}}, "body"),
    "nothing": (multipart(end=b""), "body"),
    "garbage": (multipart(end=b"garbage"), "body"),
    "no end": (multipart(FILE_PART, end=b""), "body"),
    "cut off": (multipart(FILE_PART, end=b'--edge\r\nContent-Disposition: form-data; name="ti'), "body"),
    "charset that nobody knows": (
        multipart(FILE_PART, part("title", b"x", header="Content-Type: text/plain; charset=klingon\r\n")), "body",
    ),
    "too many parts": (multipart(FILE_PART, *[part("tags", b"x")] * 200), "body"),
}  # fmt: skip


@pytest.mark.parametrize(("form", "field"), list(BAD_FORMS.values()), ids=list(BAD_FORMS))
def test_bad_form_is_refused(shared: Shared, form: dict[str, Any], field: str) -> None:
    problem = assert_problem(shared.client.post(URL, **form), 400, "invalid_input")
    assert [error["field"] for error in problem["errors"]] == [field]
    assert shared.script.documents == []


@pytest.mark.parametrize("content_type", ["text/plain", "application/pdf", "application/x-www-form-urlencoded"])
def test_other_content_types_are_415(serve: Serve, content_type: str) -> None:
    response = serve().post(URL, content=b"Hola", headers={"Content-Type": content_type})
    assert "multipart/form-data" in assert_problem(response, 415, "unsupported_media_type")["detail"]


def test_largest_file_is_taken_and_one_byte_more_is_not(serve: Serve) -> None:
    script = Script()
    client = serve(script, upload_max_mb=1)
    assert client.post(URL, files={"file": ("a.txt", b"x" * 1024 * 1024)}).status_code == 201
    response = client.post(URL, files={"file": ("a.txt", b"x" * (1024 * 1024 + 1))})
    problem = assert_problem(response, 413, "too_large")
    assert "1 MB" in problem["detail"] and "RAG_UPLOAD_MAX_MB" in problem["help"]
    assert len(script.documents) == 1


@pytest.mark.parametrize("announced", [True, False], ids=["announced", "chunked"])
def test_upload_of_11_megabytes_is_413_and_the_client_reads_it(serve: Serve, announced: bool) -> None:
    client = serve()
    request = client.build_request("POST", URL, files={"file": ("a.pdf", b"%PDF-" + b"x" * 11 * 1024 * 1024)})
    if not announced:
        body = request.read()
        request = httpx.Request(
            "POST",
            request.url,
            content=(body[at : at + 65_536] for at in range(0, len(body), 65_536)),
            headers={"Content-Type": request.headers["content-type"], "Host": request.headers["host"]},
        )
    assert_problem(client.send(request), 413, "too_large")


def test_text_beyond_a_million_bytes_is_taken(serve: Serve) -> None:
    script = Script()
    assert serve(script).post(URL, json={"text": "x" * 3_000_000}).status_code == 201
    assert len(script.documents[0].data) == 3_000_000


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (DocumentError("The PDF is encrypted."), 400, "unreadable_document"),
        (UnsupportedMediaError("This is a program."), 415, "unsupported_media_type"),
        (TooLargeError("Too many pages."), 413, "too_large"),
    ],
)
def test_documents_that_cannot_be_read_say_why(serve: Serve, error: DocumentError, status: int, code: str) -> None:
    response = serve(Script(error=error, failing="ingest")).post(URL, files=FILE)
    assert assert_problem(response, status, code)["detail"] == error.message


def test_failing_embedding_is_a_generic_problem(serve: Serve) -> None:
    error = EmbeddingError("http://10.0.0.3 is down")
    response = serve(Script(error=error, failing="ingest")).post(URL, files=FILE)
    assert_problem(response, 500, "embedding_unavailable")
    assert "10.0.0.3" not in json.dumps(response.json())
