"""What the top level promises to tools."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from functools import partial
from pathlib import Path

import pytest

from rag_service.answering.prompt.templates import load_prompts
from rag_service.indices import list_indices, load_index

LAYOUT = {
    "rag_service", "indices", "prompts", "evals", "tests", "docs", "pyproject.toml", "compose.yaml", "README.md",
    "Makefile", "LICENSE", "CHANGELOG.md", "CONTRIBUTING.md", "Dockerfile", "SECURITY.md", "uv.lock",
}  # fmt: skip


def test_the_top_level_is_the_agreed_one(checkout: Path) -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=checkout, capture_output=True, text=True, check=True).stdout
    top = {line.split("/")[0] for line in listed.split("\0") if line and not line.startswith(".")}
    assert top <= LAYOUT


def test_every_shipped_definition_and_prompt_loads() -> None:
    assert {load_index(name).name for name in list_indices()} == set(list_indices())
    assert "{{context}}" in load_prompts().template("grounded", "fr").user


def test_torch_is_in_its_extras_alone_and_pinned(checkout: Path) -> None:
    project = tomllib.loads((checkout / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    heavy = ("torch", "transformers", "sentence-transformers", "scipy", "ir-measures")
    assert not [requirement for requirement in project["dependencies"] if requirement.startswith(heavy)]
    assert "torch==2.13.0" in project["optional-dependencies"]["torch"]


def test_every_eval_set_is_in_the_wheel_and_the_benchmarks_are_not(checkout: Path) -> None:
    project = tomllib.loads((checkout / "pyproject.toml").read_text(encoding="utf-8"))
    shipped = set(project["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"])
    sets = {f"evals/{path.name}" for path in (checkout / "evals").iterdir() if path.suffix in (".json", ".jsonl")}
    assert sets | {"evals/runs"} <= shipped
    assert not {"evals", "evals/benchmarks"} & shipped


@pytest.mark.slow  # builds a wheel and starts a database
def test_the_wheel_answers_from_a_folder_of_its_own(checkout: Path, tmp_path: Path) -> None:
    """Whatever the package needs is in the wheel: definitions, prompts, migrations, page, sample documents."""
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    site, home = tmp_path / "site", tmp_path / "home"
    home.mkdir()
    subprocess.run([*pip, "wheel", "--no-deps", "--wheel-dir", str(tmp_path), str(checkout)], check=True)
    (wheel,) = tmp_path.glob("*.whl")
    subprocess.run([*pip, "install", "--no-deps", "--target", str(site), str(wheel)], check=True)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RAG_")}
    run = partial(subprocess.run, cwd=home, env=environment | {"PYTHONPATH": str(site)}, capture_output=True, text=True)
    where = run([sys.executable, "-c", "import rag_service; print(rag_service.__file__)"], check=True).stdout
    assert where.startswith(str(site))
    done = run([sys.executable, "-m", "rag_service", "quickstart", "--once", "--port", "0"], timeout=600)
    assert done.returncode == 0, done.stderr
    assert "[C1]" in done.stdout
    served = {path.suffix for path in (site / "rag_service" / "web").rglob("*") if path.is_file()}
    assert {".js", ".css", ".html"} <= served
