"""What is said of a Ray cluster before Ray is asked; the rest is in `python -m tests.soak.ray_cluster`."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from rag_service.cli import main
from rag_service.errors import ClusterError, ConfigurationError, InputError
from rag_service.ingest.bulk.ray_cluster import connected


@pytest.fixture
def without_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name == "ray" else find(name, *rest))


@pytest.mark.usefixtures("without_ray")
def test_without_the_extra_the_error_names_it() -> None:
    with pytest.raises(ConfigurationError, match=r"rag-service\[ray\]"), connected("local"):
        pass


@pytest.mark.usefixtures("without_ray")
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["note.md", "--ray"], "rag-service[ray]"),
        (["note.md", "--ray", "auto"], "rag-service[ray]"),
        (["note.md", "--ray", "other/"], "Name documents before --ray"),
        (["note.md", "--ray", "127.0.0.1:1"], "There is no Ray cluster at 127.0.0.1:1"),
    ],
)
def test_a_cluster_that_cannot_be_used_is_reported_before_anything_is_written(
    arguments: list[str], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("note.md").write_text("Gate 4 opens at six.", encoding="utf-8")
    outcome = CliRunner().invoke(main, ["ingest", *arguments], env={"RAG_DATA_DIR": "data"})
    assert outcome.exit_code == 1
    assert says in outcome.output
    assert not Path("data").exists()


@pytest.mark.parametrize("address", ["", "docs", "docs/", "head", "head:", ":6379", "ray://head:10001", "a b:1", "h:x"])
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(InputError, match="HOST:PORT"), connected(address):
        pass


@pytest.mark.parametrize("address", ["127.0.0.1:1", "[::1]:1", "127.0.0.1:99999"])
def test_an_address_where_nothing_answers_is_reported_at_once(address: str) -> None:
    with pytest.raises(ClusterError, match="There is no Ray cluster"), connected(address):
        pass


@pytest.mark.slow
def test_nothing_imports_ray_unless_it_is_asked_for() -> None:
    code = "import sys; sys.modules['ray'] = None; import rag_service.ingest.bulk.ray_cluster, rag_service.cli"
    outcome = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert outcome.returncode == 0, outcome.stderr
