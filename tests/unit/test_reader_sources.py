"""Readers that are declared as sources: their file, what becomes of their documents, where they may connect."""

from __future__ import annotations

import ipaddress
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from llama_index.core.schema import Document, ImageDocument, TextNode

from rag_service.errors import ConfigurationError, SourceError
from rag_service.readers.parse import parse
from rag_service.settings import Settings
from rag_service.sources.declared import load_readers
from rag_service.sources.reader_child import MAX_METADATA, AddressGuard, Found, Skipped, describe, describe_failure
from rag_service.sources.scheduled import SourceRunner

LARGE = 1024**2

DECLARED = """
wiki:
  use: llama_index.readers.confluence:ConfluenceReader
  with:
    base_url: https://example.org/wiki
    api_token: !env WIKI_TOKEN
    client: !object {use: tests.doubles.source_readers:Client, with: {token: !file /run/secrets/token}}
  load: {space_key: DOCS}
  files: [/srv/wiki]
  limits: {documents: 5}
"""


def test_readers_are_declared_with_arguments_secrets_and_limits(tmp_path: Path) -> None:
    file = tmp_path / "readers.yaml"
    file.write_text(DECLARED)
    wiki = load_readers(file)["wiki"]
    assert (wiki.use, wiki.load, wiki.limits.documents) == (
        "llama_index.readers.confluence:ConfluenceReader",
        {"space_key": "DOCS"},
        5,
    )
    assert (wiki.options["api_token"].kind, wiki.options["api_token"].place) == ("env", "WIKI_TOKEN")
    assert wiki.options["client"].options["token"].place == "/run/secrets/token"
    assert load_readers(None) == {}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("wiki: {use: nonsense}", "wiki.use: must be a class path"),
        ("wiki: {use: 'a:B', token: s3cr3t}", "wiki.token: Extra inputs are not permitted"),
        ("wiki: {use: 'a:B', limits: {minutes: s3cr3t}}", "wiki.limits.minutes"),
        ("'a/b': {use: 'a:B'}", "may have letters, digits, - and _ only"),
        (
            "wiki: {use: 'a:B', with: {token: !env RAG_DATABASE_URL}}",
            ":1 is not valid YAML: RAG_DATABASE_URL is a setting",
        ),
        ("wiki: {use: 'a:B', with: {token: !object {path: s3cr3t}}}", "!object needs `use"),
        ("wiki:\n  use: 'a:B'\n  with: {token: s3cr3t", "is not valid YAML"),
        ("wiki: !python/object:os.system {}", "is not valid YAML"),
        ("- s3cr3t", "should be a valid dictionary"),
    ],
)
def test_a_wrong_declaration_is_named_without_its_values(text: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "readers.yaml"
    file.write_text(text)
    with pytest.raises(ConfigurationError) as caught:
        load_readers(file)
    assert said in caught.value.message
    assert "s3cr3t" not in f"{caught.value.message} {caught.value.__cause__!r}"


@pytest.mark.parametrize(
    "metadata",
    [
        {},
        {"title": "Rules: a\n---\nb", "url": "https://example.org/?a=1#b", "author": "Zoë 🙂", "groups": ["hr", "it"]},
        {"since": "2024-01-02", "yes": "no", "number": "0123", "nested": {"a": {"b": [1, 2.5, None, True]}}},
        {"quotes": "'\"\\", "odd key: #": "\u2028\x07x", "long" * 50: "y"},
    ],
)
def test_metadata_travels_in_the_front_matter_and_the_text_stays(metadata: dict[str, Any]) -> None:
    found = describe(Document(id_="7", text="---\nnot: front matter\n---\n\nApples are red.", metadata=metadata), LARGE)
    assert isinstance(found, Found)
    parsed = parse(found.data, file_name="7.md")
    assert parsed.text == "---\nnot: front matter\n---\n\nApples are red."
    expected = {key: value.replace("\x07", "") if isinstance(value, str) else value for key, value in metadata.items()}
    told = {
        key: value.replace("\u2028", "\n") if isinstance(value, str) else value
        for key, value in parsed.metadata.items()
    }
    assert {key: str(value).split() for key, value in told.items()} == {
        key: str(value).split() for key, value in expected.items()
    }


def test_half_a_surrogate_pair_costs_one_letter() -> None:
    found = describe(Document(id_="7", text="Apples \ud800 are red.", metadata={"a\udfff": "b\ud800"}), LARGE)
    assert isinstance(found, Found)
    parsed = parse(found.data, file_name="7.md")
    assert parsed.text == "Apples ? are red."
    assert dict(parsed.metadata)["a?"] == "b?"


def test_the_order_of_metadata_is_no_change_and_any_value_is() -> None:
    def data(metadata: dict[str, Any]) -> bytes:
        found = describe(Document(id_="7", text="x", metadata=metadata), LARGE)
        assert isinstance(found, Found)
        return found.data

    assert data({"a": 1, "b": {"c": 2, "d": 3}}) == data({"b": {"d": 3, "c": 2}, "a": 1})
    assert data({"groups": ["hr"]}) != data({"groups": ["hr", "all"]})
    shared = ["hr"]
    assert b"&" not in data({"a": shared, "b": shared})  # no aliases, which front matter may not have
    assert data({"a": {"x", "y", "z"}}) == data({"a": {"z", "y", "x"}})


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        (Document(id_="7", text=" \n"), "has no text (Document)"),
        (ImageDocument(id_="7", image=b"x"), "has no text (ImageDocument)"),
        (Document(id_="7", text="x" * LARGE), "is larger than 1 MB (RAG_UPLOAD_MAX_MB)"),
        (Document(id_="7", text="x", metadata={"a": "x" * 5_000_000}), "has more than 50 KB of metadata"),
        (Document(id_="7", text="x", metadata={str(n): n for n in range(100_000)}), "has more than 50 KB of metadata"),
        (Document(id_="7", text="x", metadata={"a": "\x07" * (MAX_METADATA // 2)}), "has more than 50 KB of metadata"),
    ],
    ids=["blank", "picture", "long", "one long value", "many values", "values that grow"],
)
def test_what_cannot_be_taken_is_left_aside_with_the_reason(document: Document, reason: str) -> None:
    assert describe(document, LARGE) == Skipped(id="7", reason=reason)


def test_lies_of_a_reader_are_told_apart() -> None:
    node = TextNode.model_construct(id_=5, text="Apples are red.")
    found = describe(node, LARGE)
    assert isinstance(found, Found)
    assert (found.id, found.title) == ("", "")  # whoever takes it says what is wrong with the id
    with pytest.raises(SourceError, match="returned str where a document was expected"):
        describe("text", LARGE)
    odd = describe(Document(id_="7", text="a\ud800b", metadata={"title": 7, "x": object, "y\ud800": "\ud800"}), LARGE)
    assert isinstance(odd, Found)
    assert yaml.safe_load(odd.data.decode().split("---")[1])["title"] == 7


@pytest.mark.parametrize(
    ("address", "allowed"),
    [
        (("8.8.8.8", 443), True),
        (("2606:4700::1111", 443, 0, 0), True),
        (("10.1.2.3", 443), True),
        (("10.2.2.3", 443), False),
        (("127.0.0.1", 8000), False),
        (("::1", 8000, 0, 0), False),
        (("::ffff:127.0.0.1", 8000, 0, 0), False),
        (("169.254.169.254", 80), False),
        (("fe80::1%eth0", 80, 0, 2), False),
        (("localhost", 80), False),  # resolved a second time behind our back
        ("/var/run/postgresql/.s.PGSQL.5432", False),
        (b"\0abstract", False),
        ((0, 0), False),  # netlink
    ],
)
def test_a_reader_connects_to_allowed_addresses_only(address: Any, allowed: bool) -> None:
    guard = AddressGuard([ipaddress.ip_network("10.1.0.0/16")])
    if allowed:
        guard("socket.connect", (None, address))
        assert guard.refused == []
    else:
        for event in ("socket.connect", "socket.sendto", "socket.sendmsg"):
            with pytest.raises(PermissionError):
                guard(event, (None, address))
        assert len(guard.refused) == 1
    guard("socket.sendmsg", (None, None))  # over a socket that is connected
    guard("open", ("/etc/hosts", "r", 0))


def test_a_wrong_file_of_readers_is_an_error_at_start(tmp_path: Path) -> None:
    file = tmp_path / "readers.yaml"
    file.write_text("wiki: {use: nonsense}")
    unused: Any = None
    with pytest.raises(ConfigurationError, match=r"wiki.use: must be a class path"):
        SourceRunner(Settings(source_readers=str(file)), unused, unused, {})


def test_a_failure_is_told_by_type_and_status_and_never_by_its_message() -> None:
    def fail() -> None:
        request = httpx.Request("GET", "https://x:s3cr3t@example.org/")
        try:
            raise httpx.HTTPStatusError("s3cr3t", request=request, response=httpx.Response(401))
        except httpx.HTTPError as error:
            raise ValueError(f"Request failed: {error}") from None

    with pytest.raises(ValueError, match="Request failed") as caught:
        fail()
    told = describe_failure(caught.value, "wiki", refused=["10.1.2.3:443", "10.1.2.3:80"])
    assert told.message == (
        "The reader wiki failed: ValueError. HTTP status: 401."
        " RAG_SYNC_NETWORKS does not let it connect to 10.1.2.3:443."
    )
    assert told.detail.startswith(f"{__file__}:")
    assert describe_failure(MemoryError(), "wiki").message.startswith("The reader wiki needs more memory")
    assert describe_failure(SourceError("As it is."), "wiki").message == "As it is."


def test_an_error_that_is_its_own_cause_is_described() -> None:
    error = ValueError("Request failed")
    error.__cause__ = error
    assert describe_failure(error, "wiki").message == "The reader wiki failed: ValueError."
