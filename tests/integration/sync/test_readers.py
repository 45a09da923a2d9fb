"""A corpus is kept equal to what a LlamaIndex reader returns, and a reader's faults lose nothing."""

from __future__ import annotations

import platform
import socket
import socketserver
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from click.testing import CliRunner
from structlog.testing import capture_logs

from rag_service import components
from rag_service.cli import main
from rag_service.domain import CorpusKind
from rag_service.errors import ConfigurationError, InputError, SourceError
from rag_service.sources import reader
from rag_service.sources.declared import DeclaredReader, NewObject, Secret
from rag_service.sources.reader import ReaderPolicy, ReaderSource
from rag_service.sources.reader_child import Done, Failed, Found, Skipped
from rag_service.store.corpora import Corpus
from rag_service.store.embedded import EmbeddedServer
from tests.conftest import FakeEmbedding
from tests.integration.sync.conftest import Desk
from tests.integration.tenancy.conftest import ADMIN
from tests.integration.tenancy.web import client_of, new_key, real_application

DOUBLES = "tests.doubles.source_readers"
BIG = "x" * 300_000

Say = Callable[..., ReaderSource]


@pytest.fixture
def say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Say:
    """A source whose process says these messages and ends, without LlamaIndex, which takes seconds to load."""
    said = tmp_path / "said"
    monkeypatch.setattr(
        reader, "_BOOT",
        f"import sys; sys.stdin.buffer.read(); sys.stdout.buffer.write(open({str(said)!r}, 'rb').read())",
    )  # fmt: skip

    def write(*messages: Any, policy: ReaderPolicy | None = None, **limits: Any) -> ReaderSource:
        frames = [one if isinstance(one, bytes) else msgspec.msgpack.encode(one) for one in messages]
        said.write_bytes(b"".join(len(frame).to_bytes(4, "big") + frame for frame in frames))
        declared = DeclaredReader(use="a:B", limits=limits)
        return ReaderSource("wiki", {"wiki": declared}, policy or ReaderPolicy())

    return write


def page(id: str, text: str, *, title: str = "", url: str = "", front: str = "{}") -> Found:
    return Found(id=id, title=title, url=url, data=f"---\n{front}\n---\n{text}".encode())


DONE = Done(refused=())


async def test_a_corpus_is_kept_equal_to_a_reader(desk: Desk, say: Say) -> None:
    apples = page("1", "Apples are red.", title="About / apples", url="https://example.org/1", front="author: Ana")
    pages = [apples, page("2", "Bananas are yellow."), page("3", "Cherries are small.")]
    first = await desk.sync(say(*pages, DONE))
    assert (sorted(first.added), first.target) == (["wiki/1", "wiki/2", "wiki/3"], "reader:wiki")
    with desk.house.owner() as owner:
        row = owner.execute(
            "SELECT file_name, source, metadata->>'author', media_type FROM rag.documents WHERE name = 'wiki/1'"
        ).fetchone()
    assert row == ("About apples.md", "https://example.org/1", "Ana", "text/markdown")

    embedded = len(desk.embedding.texts)
    assert (await desk.sync(say(*reversed(pages), DONE))).unchanged == 3
    assert len(desk.embedding.texts) == embedded

    apples = msgspec.structs.replace(apples, data=apples.data.replace(b"Ana", b"Ben"))  # who wrote it, may read it, …
    third = await desk.sync(say(apples, page("3", "Cherries are dark."), DONE))
    assert (sorted(third.changed), third.deleted, third.unchanged) == (["wiki/1", "wiki/3"], ["wiki/2"], 0)
    assert desk.stored() == {"wiki/1": "Apples are red.", "wiki/3": "Cherries are dark."}


async def test_new_ids_of_the_same_documents_cost_no_embedding(desk: Desk, say: Say) -> None:
    """Readers that set no id get another one each time."""
    await desk.sync(say(page("b2c3", "Apples are red."), DONE))
    embedded = len(desk.embedding.texts)
    report = await desk.sync(say(page("d4e5", "Apples are red."), DONE))
    assert (report.renamed, len(desk.embedding.texts)) == ([("wiki/b2c3", "wiki/d4e5")], embedded)
    with desk.house.owner() as owner:  # it is read as Markdown the next time, too
        assert owner.execute("SELECT name, file_name FROM rag.documents").fetchall() == [("wiki/d4e5", "d4e5.md")]


@pytest.mark.parametrize(
    ("last", "said"),
    [
        ([Failed(message="The reader wiki failed: HTTPError, status 401.", detail="x.py:1")], "HTTPError, status 401"),
        ([], "ended without a result (exit code 0)"),
        ([b"garbage"], "disturbed its process"),
        ([page("4", BIG)], "disturbed its process"),
    ],
    ids=["fails", "ends", "garbles", "sends too much"],
)
async def test_what_came_before_a_failure_is_taken_and_nothing_is_deleted(
    desk: Desk, say: Say, last: Sequence[Any], said: str
) -> None:
    await desk.sync(say(page("1", "Apples are red."), page("2", "Bananas are yellow."), DONE))
    broken = say(page("3", "Cherries are small."), *last, policy=ReaderPolicy(max_bytes=1000))
    with pytest.raises(SourceError) as caught:
        await desk.sync(broken, delete=True)
    assert said in caught.value.message
    assert "Documents that came before: 1. Nothing was deleted." in caught.value.message
    assert sorted(desk.stored()) == ["wiki/1", "wiki/2", "wiki/3"]


async def test_documents_that_cannot_be_told_apart_delete_nothing(desk: Desk, say: Say) -> None:
    await desk.sync(say(page("1", "Apples are red."), page("2", "Bananas are yellow."), DONE))
    twice = say(page("1", "Apples are green."), page("1", "Apples are blue."), page("2", "Bananas are yellow."), DONE)
    report = await desk.sync(twice)
    assert (report.changed, report.left) == (
        ["wiki/1"], [("wiki/1 (document 2)", "another document has the same id")]
    )  # fmt: skip
    for id in ("", "  ", "a\0b", "a\u202eb", "x" * 501):
        report = await desk.sync(say(page(id, "Apples are red."), DONE), delete=True)
        assert [name for name, _ in report.left] == ["wiki: document 1"]
        assert "id" in report.left[0][1]
    assert desk.stored() == {"wiki/1": "Apples are green.", "wiki/2": "Bananas are yellow."}


async def test_a_document_that_is_left_aside_keeps_its_last_good_version(desk: Desk, say: Say) -> None:
    await desk.sync(say(page("1", "Apples are red."), page("2", "Bananas are yellow."), DONE))
    report = await desk.sync(say(Skipped(id="1", reason="has no text (ImageDocument)"), DONE))
    assert (report.left, report.deleted) == ([("wiki/1", "has no text (ImageDocument)")], ["wiki/2"])
    assert desk.stored() == {"wiki/1": "Apples are red."}


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        ({"documents": 2}, "there are more than 2 documents (limits.documents)"),
        ({"megabytes": 1}, "more than 1 MB have changed (limits.megabytes); the next run goes on"),
    ],
    ids=["documents", "megabytes"],
)
async def test_a_run_that_is_cut_by_a_limit_deletes_nothing(
    desk: Desk, say: Say, limits: dict[str, int], said: str
) -> None:
    await desk.sync(say(page("old", "Apples are red."), DONE))
    comment = f"<!-- {'x' * 600_000} -->\n"  # of the file, not of its text
    large = [page(str(number), f"{comment}Text {number}.") for number in range(3)]
    report = await desk.sync(say(*large, DONE, **limits), delete=True)
    assert report.left == [("reader:wiki", said)]
    assert sorted(desk.stored()) == ["wiki/0", "wiki/1", "wiki/old"]
    if "megabytes" in limits:
        report = await desk.sync(say(*large, DONE, **limits), delete=True)
        assert (report.added, report.deleted, report.left) == (["wiki/2"], ["wiki/old"], [])


async def test_an_address_that_is_refused_is_told(desk: Desk, say: Say) -> None:
    await desk.sync(say(page("1", "Apples are red."), page("2", "Bananas are yellow."), DONE))
    report = await desk.sync(say(page("1", "Apples are red."), Done(refused=("10.1.2.3:443",))))
    assert report.left == [("reader:wiki", "RAG_SYNC_NETWORKS does not let it connect to 10.1.2.3:443")]
    assert report.deleted == []  # the reader may have caught the error and left documents out


async def test_a_missing_secret_or_reader_is_named(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WIKI_TOKEN", raising=False)
    declared = {"wiki": DeclaredReader(use="a:B", **{"with": {"token": Secret("env", "WIKI_TOKEN")}})}
    with pytest.raises(ConfigurationError, match="wiki: the variable WIKI_TOKEN is missing"):
        await desk.sync(ReaderSource("wiki", declared, ReaderPolicy()))
    with pytest.raises(InputError, match=r"no reader 'wikki' in RAG_SOURCE_READERS. Declared: wiki."):
        ReaderSource("wikki", declared, ReaderPolicy())


@pytest.fixture
def readers_file(tmp_path: Path) -> Path:
    file = tmp_path / "readers.yaml"
    file.write_text("wiki: {use: 'a:B', with: {token: s3cr3t-t0ken}}")
    return file


async def test_administrators_add_a_declared_reader_by_its_name(desk: Desk, say: Say, readers_file: Path) -> None:
    settings = {"source_readers": str(readers_file)}
    async with (
        real_application(desk.house.server, desk.embedding, **settings) as (application, parts),
        client_of(application) as client,
    ):
        ana = await desk.house.user("ana")
        own = await desk.house.corpus(ana)
        keys = {who: {"X-API-Key": await new_key(desk.house, one)} for who, one in (("ana", ana), ("admin", ADMIN))}

        async def add(corpus: Corpus, who: str, **body: Any) -> httpx.Response:
            return await client.post(f"/api/v1/corpora/{corpus.id}/sources", json=body, headers=keys[who])

        assert (await add(own, "ana", target="reader:wiki")).json()["code"] == "not_permitted"
        unknown = await add(desk.corpus, "admin", target="reader:os.path")
        assert (unknown.status_code, "Declared: wiki" in unknown.text) == (400, True)
        for more in ({"use": "os:system"}, {"reader": {"use": "os:system"}}, {"with": {}}):  # no class from a request
            assert (await add(desk.corpus, "admin", target="reader:wiki", **more)).status_code == 400
        added = await add(desk.corpus, "admin", target="reader:wiki", everySeconds=3600)
        assert (added.status_code, added.json()["target"]) == (201, "reader:wiki")

        say(page("1", "Apples are red."), Skipped(id="2", reason="has no text (ImageDocument)"), DONE)
        assert await parts.source_runner().run_due()
        [shown] = (await client.get("/api/v1/sources", headers=keys["admin"])).json()["items"]
        assert (shown["report"]["added"], shown["report"]["reasons"]) == (1, ["wiki/2: has no text (ImageDocument)"])

        say(Failed(message="The reader wiki failed: HTTPError, status 401.", detail=""))
        await client.post(f"/api/v1/sources/{shown['id']}/run", headers=keys["admin"])
        assert await parts.source_runner().run_due()
        [shown] = (await client.get("/api/v1/sources", headers=keys["admin"])).json()["items"]
        assert shown["status"] == "failed"
        assert shown["error"] == "The reader wiki failed: HTTPError, status 401. Nothing was deleted."
        assert "s3cr3t" not in str(shown)
    assert desk.stored() == {"wiki/1": "Apples are red."}


def test_the_command_line_syncs_a_reader(
    database_server: EmbeddedServer,
    fake_embedding: FakeEmbedding,
    say: Say,
    readers_file: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(components, "build_embedding", lambda _, **__: fake_embedding)
    environment = {"RAG_DATABASE_URL": database_server.service_conninfo, "RAG_SOURCE_READERS": str(readers_file)}

    def run(*arguments: str) -> str:
        outcome = CliRunner().invoke(main, arguments, env=environment)
        assert outcome.exit_code == 0, outcome.output
        return outcome.output

    say(page("1", "Apples are red."), DONE)
    assert "reader:wiki: 1 added, 0 unchanged" in run("sync", "reader:wiki", "--corpus", "fruit")
    assert "reader:wiki: 1 unchanged" in run("sync", "reader:wiki", "--corpus", "fruit")
    assert "synced into fruit every hour" in run(
        "sources", "add", "reader:wiki", "--corpus", "fruit", "--every", "hour"
    )
    assert "reader:wiki" in run("sources", "list")


def declared(use: str, options: dict[str, Any] | None = None, **more: Any) -> ReaderSource:
    """A source that really runs a reader."""
    made = DeclaredReader(use=use if ":" in use else f"{DOUBLES}:{use}", **{"with": options or {}}, **more)
    return ReaderSource("wiki", {"wiki": made}, ReaderPolicy())


@pytest.fixture
def unix_server() -> Iterator[str]:
    """Stands for the database's socket; accepts everybody."""
    with tempfile.TemporaryDirectory(prefix="rag-") as folder:  # the address may have a hundred characters
        path = f"{folder}/socket"
        with socketserver.UnixStreamServer(path, socketserver.BaseRequestHandler) as server:
            threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
            yield path
            server.shutdown()


@pytest.mark.slow
async def test_a_reader_gets_its_own_secret_and_nothing_else_of_the_service(
    desk: Desk, unix_server: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("WIKI_TOKEN", "s3cr3t-t0ken")
    monkeypatch.setenv("RAG_DATABASE_URL", "postgresql://s3rv1ce")
    secret_file = tmp_path / "password"
    secret_file.write_text("s3rv1ce")
    with socket.create_server(("127.0.0.1", 0)) as server:
        source = declared(
            "Curious",
            {
                "client": NewObject(f"{DOUBLES}:Client", {"token": Secret("env", "WIKI_TOKEN")}),
                "secret_file": str(secret_file),
                "unix": unix_server,
                "port": server.getsockname()[1],
            },
        )
        with capture_logs() as lines:
            report = await desk.sync(source)
    texts = {name.removeprefix("wiki/"): text for name, text in desk.stored().items()}
    assert texts["token"] == "12"
    assert texts["environment"] == "HOME LANG OPENBLAS_NUM_THREADS PATH TMPDIR"
    assert texts["temporary"] == "1"
    assert {texts[name] for name in ("unix", "named")} == {"refused: PermissionError"}
    assert texts["loopback"].startswith("refused: ")  # urllib wraps the error
    if sys.platform == "linux" and platform.machine() in ("x86_64", "aarch64"):
        assert texts["unix socket"] == "refused: PermissionError"  # not even one, so that C code cannot connect it
    if reader.can_limit_files():
        assert {texts[name] for name in ("file", "parent", "listen")} == {"refused: PermissionError"}
    [(_, refused)] = report.left
    assert "127.0.0.1" in refused
    assert "s3cr3t" not in f"{report} {lines}"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "said", "kept"),
    [
        ("raises", "The reader wiki failed: ValueError.", 1),
        ("exits", "The reader wiki failed: SystemExit.", 1),
        ("returns texts", "returned str where a document was expected", 0),
        ("returns nothing", "returned NoneType where documents were expected", 0),
        ("is too large for its memory", "needs more memory than it may use (limits.memory_mb)", 0),
        ("kills itself", "was killed", 0),
        ("writes to every file", "disturbed its process", None),
        ("hangs", "took longer than 0.3 minutes (limits.minutes)", None),
    ],
)
async def test_a_faulty_reader_is_told_and_loses_nothing(
    desk: Desk, say: Say, fault: str, said: str, kept: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    await desk.sync(say(page("old", "Bananas are yellow."), DONE))
    monkeypatch.undo()  # from now on, real processes
    monkeypatch.setenv("WIKI_TOKEN", "s3cr3t-t0ken")
    minutes = 0.3 if fault == "hangs" else 5
    source = declared(
        "Faulty", {"fault": fault, "token": Secret("env", "WIKI_TOKEN")}, limits={"memory_mb": 1024, "minutes": minutes}
    )
    with capture_logs() as lines, pytest.raises(SourceError) as caught:
        await desk.sync(source)
    assert said in caught.value.message
    assert "s3cr3t" not in f"{caught.value.message} {caught.value.__cause__!r} {lines}"
    if kept is not None:
        assert len(desk.stored()) == 1 + kept
    assert "wiki/old" in desk.stored()


@pytest.mark.slow
async def test_a_reader_that_never_stops_is_ended_at_its_limit(desk: Desk) -> None:
    source = declared("Endless", limits={"documents": 20})
    report = await desk.sync(source)
    assert len(report.added) == 20
    assert report.left == [("reader:wiki", "there are more than 20 documents (limits.documents)")]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("use", "more", "said"),
    [
        ("Missing", {}, "has no class Missing"),
        ("pathlib:Path", {}, "is not a subclass of llama_index.core.readers.base.BaseReader"),
        ("llama_index.readers.confluence:ConfluenceReader", {}, "pip install llama-index-readers-confluence"),
        ("Pages", {"options": {"pagse": []}}, "has no option 'pagse'. Did you mean pages?"),
        ("Pages", {"load": {"spaces": "x"}}, "lazy_load_data has no argument 'spaces'. Did you mean space?"),
    ],
)
async def test_a_wrong_class_or_argument_is_named(desk: Desk, use: str, more: dict[str, Any], said: str) -> None:
    with pytest.raises(SourceError) as caught:
        await desk.sync(declared(use, **more))
    assert said in caught.value.message


@pytest.mark.slow
async def test_stock_readers_of_llama_index_are_sources(desk: Desk, tmp_path: Path) -> None:
    desk.write(a="Apples are red.", b__c="Bananas are yellow.")
    (tmp_path / "secret.txt").write_text("Cherries are secret.")
    folder = {"input_dir": str(desk.folder), "recursive": True, "filename_as_id": True}
    directory = declared("llama_index.core.readers:SimpleDirectoryReader", folder, files=[desk.folder])
    assert len((await desk.sync(directory)).added) == 2
    assert (await desk.sync(directory)).unchanged == 2
    desk.write(a="Apples are green.")
    (desk.folder / "b" / "c.txt").unlink()
    report = await desk.sync(directory)
    assert (len(report.changed), len(report.deleted)) == (1, 1)
    assert desk.stored() == {f"wiki/{desk.folder}/a.txt": "Apples are green."}

    (desk.folder / "data.json").write_text('{"fruit": "apple", "colour": "red"}')
    strings = declared(
        "llama_index.core.readers.string_iterable:StringIterableReader", load={"texts": ["Plums are blue."]}
    )
    json_reader = declared(
        "llama_index.core.readers.json:JSONReader",
        load={"input_file": str(desk.folder / "data.json"), "extra_info": {"title": "Fruit"}},
        files=[desk.folder / "data.json"],
    )
    for source, text in ((strings, "Plums are blue."), (json_reader, '"fruit": "apple",\n"colour": "red"')):
        corpus = await desk.house.corpus(ADMIN, text[:5], CorpusKind.GLOBAL)
        report = await desk.open(source, corpus=corpus).run()
        assert len(report.added) == 1, report
        with desk.house.owner() as owner:
            query = "SELECT t.text FROM rag.document_texts t WHERE t.corpus_id = %s"
            assert owner.execute(query, [corpus.id]).fetchall() == [(text,)]
