"""Every command line of README and guides is run as it stands, in the order of the texts, on one database.

What a shell line exports holds for the rest of its block. Addresses of other machines become the test's own
database, and the model server is the double of Ollama.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import psycopg
import pytest
from click.testing import CliRunner

from rag_service.cli import main
from rag_service.cli.asking import EXIT_CODES
from rag_service.evaluation import saved
from rag_service.store.embedded import EmbeddedServer
from tests.acceptance.cli_process import started, tell_stacks
from tests.documents import ROOT, code_blocks, guides
from tests.doubles.ollama import OllamaDouble, ollama
from tests.serving import free_port, wait_until

pytestmark = pytest.mark.slow

__all__ = ["ollama"]

# What is told to type, but not run here, and why.
NOT_RUN = {
    "make run": "sets up an environment of its own, then runs `rag-service quickstart`",
    "make test": "is what runs this",
    "docker compose up": "needs Docker; its file is checked by tests/unit/test_packaging.py",
    "docker compose up --scale worker=4": "needs Docker",
    "docker compose exec": "needs Docker; the two commands inside are run where other guides show them",
    "docker build": "needs Docker",
    "kubectl": "needs a cluster; tests/unit/test_deployment.py checks the manifests",
    "pg_basebackup": "needs a second database machine; tests/integration/replica makes one",
    "python -m tests.peer_store": "needs a test file of LlamaIndex, which is not in the repository",
    "ray start": "needs a cluster; `python -m tests.soak.ray_cluster` makes one",
    "--ray": "needs a cluster, likewise",
    "pip install 'rag-service[ocr]'": "installs from the package index",
    "pip install 'rag-service[s3]'": "installs from the package index",
    "npm install openapi-fetch": "installs from npm; tests/acceptance/test_typescript_guides.py runs the guide",
    "npx openapi-typescript": "likewise",
    "rag-service sync s3://": "reads a bucket; tests/integration/sync/test_store.py has a store in memory",
    "rag-service sync https://": "fetches pages of the internet; tests/integration/sync/test_web.py has a site",
    "reader:wiki": "reads a wiki, with a password; tests/integration/sync/test_readers.py runs readers",
    "--watch": "goes on until it is stopped; tests/integration/sync/test_folder.py watches",
    "rag-service quickstart --models": "fetches models; tests/integration/models/test_models_pull.py does it",
}
_ELSEWHERE = "…"  # in an address or password that the reader fills in
_KEEP_RUNNING = ("quickstart", "serve", "worker")
_INLINE = re.compile(r"`((?:rag-service|docker|ray) [^`]+)`")


@dataclass(frozen=True, kw_only=True)
class Told:
    """A command line and what was exported before it."""

    guide: str
    line: str
    exported: Mapping[str, str] = field(default_factory=dict)  # without addresses of other machines


def told() -> list[Told]:
    """All lines of shell blocks but those of curl, which `test_integrators_guide` runs, then those inside sentences."""
    found = []
    for guide in guides():
        text = guide.read_text(encoding="utf-8")
        for block in code_blocks(text, "sh"):
            if "curl" in block:
                continue
            exported: dict[str, str] = {}
            joined = block.replace("\\\n", " ")
            for line in (line.partition(" #")[0].strip() for line in joined.splitlines()):
                if line.startswith("export "):
                    pairs = (part.split("=", 1) for part in shlex.split(line)[1:])
                    exported |= {name: value for name, value in pairs if _ELSEWHERE not in value}
                elif line:
                    found.append(Told(guide=guide.name, line=line, exported=dict(exported)))
        found += [Told(guide=guide.name, line=line) for line in _INLINE.findall(text)]
    first: dict[tuple[object, ...], Told] = {}
    for one in found:
        first.setdefault((one.line, *one.exported.items()), one)
    return list(first.values())


def reason_not_to(line: str) -> str | None:
    return next((reason for words, reason in NOT_RUN.items() if words in line), None)


class Reader:
    """Does what the guides say, in a folder with a few documents."""

    def __init__(self, server: EmbeddedServer, model: OllamaDouble, folder: Path):
        self._server = server
        self._folder = folder
        self._port = str(free_port())
        self._owner = psycopg.connect(server.owner_conninfo, autocommit=True)
        self.environment = {
            "RAG_DATA_DIR": str(folder / "data"),
            "RAG_DATABASE_URL": server.service_conninfo,
            "RAG_DATABASE_OWNER_URL": server.owner_conninfo,
            "RAG_EMBEDDING_PROVIDER": "ollama",
            "RAG_EMBEDDING_MODEL": "llama3.2",
            "RAG_OLLAMA_URL": model.url,
            "RAG_PORT": self._port,
            "RAG_SHUTDOWN_SECONDS": "1",
        }
        (folder / "reports").mkdir()
        (folder / "reports" / "service.md").write_text("# Rapport\n\nLe taux de service est de 97,4 %.\n", "utf-8")
        (folder / "notes.md").write_text("# Notes\n\nGate 4 opens at six.\n", "utf-8")
        for name in ("evals", "indices"):
            shutil.copytree(ROOT / name, folder / name)

    def close(self) -> None:
        self._owner.close()

    def follow(self, one: Told) -> str | None:
        """Run it; what went wrong, or None."""
        environment = {**os.environ, **self.environment, **one.exported}
        arguments = shlex.split(self._filled_in(one.line))
        if arguments[0] != "rag-service":
            return "no way to run this is known; give it one here, or a reason in NOT_RUN"
        if arguments[1] in _KEEP_RUNNING and "--once" not in arguments:
            return self._keep_running(arguments[1:], environment)
        if arguments[1] == "mcp":
            return self._until_its_client_leaves(arguments[1:], environment)
        outcome = CliRunner().invoke(main, arguments[1:], env=environment)
        good = EXIT_CODES.values() if arguments[1] == "ask" else {0}
        return None if outcome.exit_code in good else f"{outcome.output}\n{outcome.exception!r}"

    def _filled_in(self, line: str) -> str:
        for shown, query in {
            "<answer id>": "SELECT id::text FROM rag.answers LIMIT 1",
            "<id>": "SELECT id::text FROM rag.api_keys LIMIT 1",
        }.items():
            if shown in line:
                row = self._owner.execute(query).fetchone()
                assert row is not None, f"nothing was made before that {line} could name"
                line = line.replace(shown, row[0])
        return line.replace("<sub>", "subject-1").replace("--port 8080", f"--port {self._port}")

    def _keep_running(self, arguments: Sequence[str], environment: Mapping[str, str]) -> str | None:
        """It comes up, does its work, and ends in order when it is told to."""
        output = self._folder / "output.txt"
        with started(arguments, environment, folder=self._folder, output=output) as process:

            def up() -> bool:
                assert process.is_alive(), output.read_text()
                return self._works(arguments[0])

            wait_until(up, 300)
            if "--port" in arguments:  # the README's, which shows what to ask of it
                self._ask()
            process.terminate()
            process.join(180)
            if process.exitcode in (0, -signal.SIGTERM):  # uvicorn ends in order, then by the signal
                return None
            if process.exitcode is None:
                tell_stacks(process)
            return f"exit code {process.exitcode}: {output.read_text()}"

    def _ask(self) -> None:
        """The README's examples with curl."""
        blocks = [
            block for block in code_blocks((ROOT / "README.md").read_text(encoding="utf-8"), "sh") if "curl" in block
        ]
        assert len(blocks) == 2
        script = "\n".join(blocks).replace("localhost:8000", f"127.0.0.1:{self._port}")
        if shutil.which("curl") is not None:
            asked = ["sh", "-eu", "-c", script.replace("curl -s", "curl --fail-with-body -s")]
            said = subprocess.run(asked, capture_output=True, text=True, timeout=300, check=True).stdout
            assert '"citations"' in said and "event: done" in said

    def _works(self, command: str) -> bool:
        if command == "worker":
            row = self._owner.execute("SELECT count(*) FROM rag.procrastinate_workers").fetchone()
            return row is not None and row[0] > 0
        try:
            return httpx.get(f"http://127.0.0.1:{self._port}/health", timeout=60, trust_env=False).status_code == 200
        except httpx.TransportError:
            return False

    def _until_its_client_leaves(self, arguments: Sequence[str], environment: Mapping[str, str]) -> str | None:
        output = self._folder / "output.txt"
        with started(arguments, environment, folder=self._folder, output=output) as process:
            process.join(180)
            return None if process.exitcode == 0 else f"exit code {process.exitcode}: {output.read_text()}"


def test_every_command_of_the_guides_runs(
    database_server: EmbeddedServer,
    ollama: OllamaDouble,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    parsed_here: None,
) -> None:
    monkeypatch.setattr(saved, "runs_folder", lambda: tmp_path / "evals" / "runs")
    monkeypatch.chdir(tmp_path)
    with ExitStack() as stack:
        reader = Reader(database_server, ollama, tmp_path)
        stack.callback(reader.close)
        lines = [one for one in told() if reason_not_to(one.line) is None]
        assert len(lines) > 20
        wrong = {f"{one.guide}: {one.line}": reader.follow(one) for one in lines}
    found = "\n".join(f"{line}: {why}" for line, why in wrong.items() if why is not None)
    assert not found, found
    assert (tmp_path / "comparison.svg").exists()


def test_what_is_not_run_is_still_told_somewhere() -> None:
    lines = [one.line for one in told()]
    assert [words for words in NOT_RUN if not any(words in line for line in lines)] == []
