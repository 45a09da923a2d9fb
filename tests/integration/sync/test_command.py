"""`rag-service sync` and `service.sync`."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from rag_service import components, open_service
from rag_service.cli import main, progress
from rag_service.errors import InputError
from rag_service.sources.report import SyncProgress
from rag_service.store.embedded import EmbeddedServer
from tests.conftest import FakeEmbedding

pytestmark = pytest.mark.slow


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "papers"
    folder.mkdir()
    (folder / "loans.md").write_text("# Loans\n\nThe maximum loan is 50,000 dollars.")
    (folder / "film.mp4").write_bytes(b"x")
    return folder


def test_the_command_syncs_and_reports(
    database_server: EmbeddedServer, fake_embedding: FakeEmbedding, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(components, "build_embedding", lambda _, **__: fake_embedding)
    monkeypatch.setattr(progress, "_LINE_SECONDS", 0.0)
    environment = {"RAG_DATABASE_URL": database_server.service_conninfo}

    def run(*arguments: str) -> str:
        outcome = CliRunner().invoke(main, ["sync", *arguments], env=environment)
        assert outcome.exit_code == 0, outcome.output
        return outcome.output

    first = run(str(folder), "--corpus", "loans")
    assert "Syncing: 0 of 1, loans.md" in first
    assert "1 added, 0 unchanged" in first
    assert "skipped: film.mp4: .mp4 files are not supported" in first
    assert "1 unchanged" in run(str(folder), "--corpus", "loans")
    (folder / "loans.md").unlink()
    assert "kept: loans.md" in run(str(folder), "--corpus", "loans", "--keep")
    assert "deleted: loans.md" in run(str(folder), "--corpus", "loans", "--delete")
    outcome = CliRunner().invoke(main, ["sync", str(folder / "nowhere")], env=environment)
    assert (outcome.exit_code, "is not a folder" in outcome.output) == (1, True)


def test_python_syncs_with_progress(
    database_server: EmbeddedServer, fake_embedding: FakeEmbedding, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(components, "build_embedding", lambda _, **__: fake_embedding)
    told: list[SyncProgress] = []
    with open_service(database_url=database_server.service_conninfo, similarity_threshold=0.3) as service:
        assert service.sync(folder, on_progress=told.append).added == ["loans.md"]
        assert [step.done for step in told] == [0, 1]
        assert "50,000 dollars" in service.ask("What is the maximum loan?").text
        (folder / "copy.md").write_bytes((folder / "loans.md").read_bytes())
        assert [file.outcome for file in service.ingest(folder)] == ["added", "unchanged", "skipped"]
        (folder / "loans.md").write_text("# Loans\n\nThe maximum loan is 60,000 dollars.")
        assert [file.outcome for file in service.ingest(folder)] == [
            "unchanged",
            "replaced",
            "skipped",
        ]
        with pytest.raises(InputError, match="gopher://"):
            service.sync("gopher://example.org/papers")
