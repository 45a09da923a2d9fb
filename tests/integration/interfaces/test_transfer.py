"""Export and import from Python, embedded and remote, and on the command line."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner, Result

from rag_service import components, open_service
from rag_service.app import create_app
from rag_service.cli import main, progress
from rag_service.client import Service
from rag_service.domain import LOCAL_ADMIN, CorpusKind, Identity
from rag_service.errors import ArchiveError, ConflictError, InputError, NotFoundError, ServiceUnreachableError
from rag_service.ingest.transfer import archive
from rag_service.settings import Settings
from rag_service.sources.report import SyncProgress
from rag_service.store.accounts.users import create_user
from rag_service.store.corpora import create_corpus
from rag_service.store.database import Database
from rag_service.store.embedded import EmbeddedServer
from tests.conftest import FakeEmbedding
from tests.serving import served

QUESTION = "What is the maximum loan?"


@pytest.fixture(autouse=True)
def _fake(fake_embedding: FakeEmbedding, parsed_here: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(components, "build_embedding", lambda _, **__: fake_embedding)


@pytest.fixture
def service(database_server: EmbeddedServer, tmp_path: Path) -> Iterator[Service]:
    (tmp_path / "loans.md").write_text("# Loans\n\nThe maximum loan is 50,000 dollars.")
    conninfo, folder = database_server.service_conninfo, tmp_path / "data"
    with open_service(database_url=conninfo, data_dir=folder, similarity_threshold=0.3) as service:
        service.ingest(tmp_path / "loans.md")
        yield service


def test_python_exports_and_imports_with_progress(service: Service, tmp_path: Path) -> None:
    told: list[SyncProgress] = []
    file = service.export_corpus("documents", tmp_path / "a.tar", on_progress=told.append)
    assert [(step.done, step.total, step.name) for step in told] == [(0, 1, "loans.md"), (1, 1, "")]
    with pytest.raises(InputError, match="exists; choose another name"):
        service.export_corpus("documents", file)
    with pytest.raises(NotFoundError, match="0 corpora are named 'papers'"):
        service.export_corpus("papers", tmp_path / "b.tar")
    with pytest.raises(ConflictError, match="already exists"):
        service.import_corpus(file)
    told.clear()
    report = service.import_corpus(file, name="copy", on_progress=told.append)
    assert [step.name for step in told] == ["checking loans.md", "storing loans.md", ""]
    assert repr(report).splitlines() == [
        f"1 documents (1 chunks) were imported into the global corpus 'copy' ({report.body.corpus.id}).",
        "It can be read by administrators.",
    ]
    assert "50,000 dollars" in service.search(QUESTION, corpus_ids=[report.body.corpus.id])[0].text
    file.write_bytes(file.read_bytes()[:-3000])
    with pytest.raises(ArchiveError, match="not complete"):
        service.import_corpus(file, name="another")
    assert [corpus.name for corpus in service.corpora()] == ["copy", "documents"]


def test_a_remote_service_exports_and_imports(
    service: Service, database_server: EmbeddedServer, tmp_path: Path
) -> None:
    settings = Settings(
        database_url=database_server.service_conninfo, data_dir=tmp_path / "remote", worker_embedded=False
    )
    with served(create_app(settings)) as url, open_service(url=url) as remote:
        file = remote.export_corpus("documents", tmp_path / "a.tar")
        report = remote.import_corpus(file, name="copy", kind="personal")
        assert (report.body.corpus.name, report.body.corpus.kind, report.body.documents) == ("copy", "personal", 1)
        with pytest.raises(ConflictError):
            remote.import_corpus(file, name="copy", kind="personal")
        with pytest.raises(ArchiveError):
            remote.import_corpus(tmp_path / "loans.md")


def test_an_interrupted_download_leaves_no_file(tmp_path: Path) -> None:
    async def broken(scope: object, receive: Callable[..., object], send: Callable[..., object]) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})  # type: ignore[misc]
        await send({"type": "http.response.body", "body": b"half", "more_body": True})  # type: ignore[misc]
        if scope["path"] != "/health":  # type: ignore[index]
            return
        await send({"type": "http.response.body", "body": b"", "more_body": False})  # type: ignore[misc]

    from rag_service.client.remote import RemoteBackend

    with served(broken) as url:  # type: ignore[arg-type]  # an ASGI application
        backend = RemoteBackend(url, None)

        async def export() -> None:
            backend._client = httpx.AsyncClient(base_url=url)
            await backend.export(LOCAL_ADMIN.user_id, tmp_path / "a.tar")

        with pytest.raises(ServiceUnreachableError):
            asyncio.run(export())
    assert list(tmp_path.iterdir()) == []


def test_the_commands_export_and_import(
    service: Service, database_server: EmbeddedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "_LINE_SECONDS", 0.0)
    environment = {"RAG_DATABASE_URL": database_server.service_conninfo, "RAG_DATA_DIR": str(tmp_path / "cli")}

    def run(*arguments: str) -> Result:
        return CliRunner().invoke(main, arguments, env=environment)

    file = str(tmp_path / "a.tar")
    exported = run("export", "documents", file)
    assert exported.exit_code == 0, exported.output
    assert "Exporting: 0 of 1, loans.md" in exported.output
    assert f"documents was exported to {file}" in exported.output
    imported = run("import", file, "--name", "copy", "--kind", "personal")
    assert imported.exit_code == 0, imported.output
    assert "Importing: 0 of 1, storing loans.md" in imported.output
    assert "1 documents (1 chunks) were imported into the personal corpus 'copy'" in imported.output
    again = run("import", file)
    assert (again.exit_code, "already exists; choose another name" in again.output) == (1, True)
    other = run("import", str(tmp_path / "loans.md"))
    assert (other.exit_code, "not an export of a corpus" in other.output) == (1, True)
    with monkeypatch.context() as patched:
        patched.setattr(archive, "_open_unnamed", lambda _: Path("/dev/full").open("w+b"))  # noqa: SIM115
        full = run("import", file, "--name", "full")
        assert (full.exit_code, "No space is left on the disk" in full.output) == (1, True)
    missing = run("export", "nowhere", str(tmp_path / "b.tar"))
    assert (missing.exit_code, "There is no corpus 'nowhere'" in missing.output) == (1, True)
    assert sorted(path.name for path in tmp_path.glob("*.tar*")) == ["a.tar"]


def test_the_commands_do_not_reach_the_personal_corpora_of_others(
    database_server: EmbeddedServer, tmp_path: Path
) -> None:
    async def create() -> str:
        database = Database(database_server.service_conninfo, pool_size=1, timeout=5)
        await database.open()
        async with database.transaction(LOCAL_ADMIN) as connection:
            ana = Identity(user_id=(await create_user(connection, name="ana", role=Identity.role)).id)
        async with database.transaction(ana) as connection:
            corpus = await create_corpus(connection, ana, name="diary", kind=CorpusKind.PERSONAL, index_name="general")
        await database.close()
        return str(corpus.id)

    corpus_id = asyncio.run(create())
    for name in ("diary", corpus_id):
        environment = {"RAG_DATABASE_URL": database_server.service_conninfo, "RAG_DATA_DIR": str(tmp_path / "cli")}
        outcome = CliRunner().invoke(main, ["export", name, str(tmp_path / "a.tar")], env=environment)
        assert (outcome.exit_code, "There is no corpus" in outcome.output) == (1, True)
