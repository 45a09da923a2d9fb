"""What the guide for integrators shows is run as it stands: curl and Python against the real service."""

from __future__ import annotations

import asyncio
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from rag_service import components
from rag_service.app import LOCAL_ADMIN, create_app, open_components
from rag_service.ingest.pipeline import DocumentInput
from rag_service.settings import Settings
from rag_service.store.embedded import EmbeddedServer
from rag_service.store.people.keys import Scope, create_key
from tests.conftest import FakeEmbedding
from tests.documents import GUIDES, ROOT, code_blocks
from tests.serving import served

GUIDE = (GUIDES / "integrators.md").read_text(encoding="utf-8")
SHOWN = "http://127.0.0.1:8000"


@pytest.fixture
def service(
    database_server: EmbeddedServer, fake_embedding: FakeEmbedding, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[str, str]]:
    """(base URL, key) of the service with its sample documents, login required."""
    monkeypatch.setattr(components, "build_embedding", lambda _: fake_embedding)
    settings = Settings(database_url=database_server.service_conninfo, auth="required", similarity_threshold=0.2)  # type: ignore[arg-type]
    key = asyncio.run(prepare(settings))
    with served(create_app(settings)) as url:
        yield url, key


async def prepare(settings: Settings) -> str:
    async with open_components(settings) as opened:
        for file in sorted((ROOT / "indices" / "general" / "documents").glob("*.md")):
            await opened.ingest(DocumentInput(data=file.read_bytes(), file_name=file.name), LOCAL_ADMIN)
        async with opened.database.transaction(LOCAL_ADMIN) as connection:
            _, secret = await create_key(connection, user_id=LOCAL_ADMIN.user_id, name="guide", scopes=list(Scope))
    return secret


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed; the examples are written with it")
def test_every_curl_example_succeeds(service: tuple[str, str], tmp_path: Path) -> None:
    url, key = service
    blocks = [block for block in code_blocks(GUIDE, "sh") if "curl" in block]
    assert len(blocks) >= 7
    lines = [block.replace(SHOWN, url).replace("curl -s", "curl --fail-with-body -s") for block in blocks]
    outcome = subprocess.run(
        ["sh", "-eu", "-c", "\n".join(lines)], cwd=tmp_path, env={"KEY": key, "PATH": "/usr/local/bin:/usr/bin:/bin"},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    for shown in ('"citations"', "event: final", "http/1.1 202", '"filename":"parking.txt"'):
        assert shown in outcome.stdout.lower(), shown


def test_every_python_example_runs(service: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    url, key = service
    blocks = code_blocks(GUIDE, "python")
    assert len(blocks) == 2
    for block in blocks:
        exec(compile(block, "integrators.md", "exec"), {"base_url": url, "key": key})  # noqa: S102 - our own guide
    said = capsys.readouterr().out
    assert "verified" in said
    assert re.search(r"\[C\d", said)


def test_every_error_code_of_the_guide_exists() -> None:
    from rag_service import errors
    from rag_service.api.wire import problems

    known = {
        getattr(value, "code", None)
        for module in (errors, problems)
        for value in vars(module).values()
        if isinstance(value, type)
    }
    table = GUIDE.partition("| status | codes |")[2]
    named = {code for row in table.splitlines() for code in re.findall(r"`([a-z_]+)`", row.partition(":")[0])}
    assert named
    assert named <= known
