"""The examples of the guides run as they are written: curl and Python against the real service."""

from __future__ import annotations

import asyncio
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from rag_service import components
from rag_service.app import create_app
from rag_service.components import open_components
from rag_service.domain import LOCAL_ADMIN
from rag_service.settings import Settings
from rag_service.store.accounts.keys import Scope, create_key
from rag_service.store.documents.documents import DocumentInput
from rag_service.store.embedded import EmbeddedServer
from tests.conftest import FakeEmbedding
from tests.documents import ROOT, code_blocks, guides
from tests.serving import served

pytestmark = pytest.mark.slow

SHOWN = "http://127.0.0.1:8000"
SAMPLES = ROOT / "indices" / "general" / "documents"


def pages_with(language: str, *words: str) -> list[Path]:
    """Guides with a code block that holds one of the words."""
    return [
        guide
        for guide in guides()[1:]
        if any(word in block for block in code_blocks(guide.read_text(encoding="utf-8"), language) for word in words)
    ]


@pytest.fixture
def service(database_server: EmbeddedServer) -> Iterator[tuple[str, str]]:
    """(base URL, key) of the service with its sample documents and the packaged model, sign-in required."""
    settings = Settings(database_url=database_server.service_conninfo, auth="required")  # type: ignore[arg-type]
    key = asyncio.run(prepare(settings))
    with served(create_app(settings)) as url:
        yield url, key


async def prepare(settings: Settings) -> str:
    async with open_components(settings) as opened:
        for file in sorted(SAMPLES.glob("*.md")):
            await opened.ingest(DocumentInput(data=file.read_bytes(), file_name=file.name), LOCAL_ADMIN)
        async with opened.database.transaction(LOCAL_ADMIN) as connection:
            _, secret = await create_key(connection, user_id=LOCAL_ADMIN.user_id, name="guide", scopes=list(Scope))
    return secret


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed; the examples are written with it")
def test_every_curl_example_succeeds(service: tuple[str, str], tmp_path: Path) -> None:
    url, key = service
    blocks = [
        block
        for guide in pages_with("sh", "curl")
        for block in code_blocks(guide.read_text(encoding="utf-8"), "sh")
        if "curl" in block
    ]
    assert len(blocks) >= 7
    lines = [block.replace(SHOWN, url).replace("curl -s", "curl --fail-with-body -s") for block in blocks]
    # The tutorial's example has no key, because its service asks for none.
    sign_in = '-H "Authorization: Bearer $KEY" -H "Content-Type'
    lines = [line if "$KEY" in line else line.replace('-H "Content-Type', sign_in) for line in lines]
    outcome = subprocess.run(
        ["sh", "-eu", "-c", "\n".join(lines)], cwd=tmp_path, env={"KEY": key, "PATH": "/usr/local/bin:/usr/bin:/bin"},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    for shown in ('"citations"', "event: final", "http/1.1 202", '"filename":"parking.txt"'):
        assert shown in outcome.stdout.lower(), shown


def test_every_python_client_example_runs(service: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    url, key = service
    found = pages_with("python", "base_url")
    assert [guide.name for guide in found] == ["ask.md", "openai.md"]
    for guide in found:
        for block in code_blocks(guide.read_text(encoding="utf-8"), "python"):
            exec(compile(block, guide.name, "exec"), {"base_url": url, "key": key})  # noqa: S102 - our own guide
    printed = capsys.readouterr().out
    assert "verified" in printed
    assert re.search(r"\[C\d", printed)


def test_every_example_of_the_python_package_runs(
    database_server: EmbeddedServer,
    fake_embedding: FakeEmbedding,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(components, "build_embedding", lambda _, **__: fake_embedding)
    monkeypatch.setenv("RAG_DATABASE_URL", database_server.service_conninfo)
    monkeypatch.setenv("RAG_SIMILARITY_THRESHOLD", "0.2")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "documents").symlink_to(SAMPLES)
    for guide in pages_with("python", "open_service"):
        for block in code_blocks(guide.read_text(encoding="utf-8"), "python"):
            exec(compile(block, guide.name, "exec"), {})  # noqa: S102 - our own guide
    printed = capsys.readouterr().out
    assert "can_proceed" in printed or "uncertain" in printed  # as the embedding of the tests has it
    assert "Gate 4 opens at six." in printed
