"""The guides match the code: every command parses and every setting exists."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest

from rag_service.cli import main
from rag_service.indices import load_index
from rag_service.settings import setting_fields, setting_name
from rag_service.sources.declared import load_readers
from tests.documents import DOCS, ROOT, code_blocks, guides

COMPOSE_ONLY = {"RAG_DB_PASSWORD", "RAG_DB_OWNER_PASSWORD"}  # read by compose.yaml, not by the service
EXAMPLES = {"<answer id>": "00000000-0000-4000-8000-000000000001", "<id>": "00000000-0000-4000-8000-000000000001"}


def commands() -> list[tuple[str, str]]:
    """(page, command line) of every command in the guides, the decisions and the page for contributors."""
    found = []
    for guide in [*guides(), ROOT / "CONTRIBUTING.md", *sorted((DOCS / "decisions").glob("*.md"))]:
        text = guide.read_text(encoding="utf-8").replace("\\\n", " ")
        lines = [line for block in code_blocks(text, "sh") for line in block.splitlines()]
        if "decisions" not in guide.parts:  # whose sentences name commands in short
            lines += re.findall(r"`(rag-service [^`]+)`", text)
        found += [(guide.name, line.partition("#")[0].strip()) for line in lines if line.startswith("rag-service ")]
    return found


def test_the_guides_show_commands() -> None:
    assert len(commands()) > 25


@pytest.mark.parametrize(("guide", "line"), commands())
def test_every_command_parses(
    guide: str, line: str, tmp_path: Path, checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names, options and their values, as click reads them."""
    for name in ("reports", "evals"):
        (tmp_path / name).symlink_to(checkout / "evals")
    for name in ("notes.md", "documents.tar"):
        (tmp_path / name).write_text("x", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    for shown, example in {**EXAMPLES, "<sub>": "x"}.items():
        line = line.replace(shown, example)
    command: click.Command = main
    context: click.Context | None = None
    name, arguments = "rag-service", shlex.split(line)[1:]
    while isinstance(command, click.Group) and arguments:
        context = click.Context(command, info_name=name, parent=context)
        found, resolved, arguments = command.resolve_command(context, arguments)
        assert resolved is not None and found is not None, f"{guide}: {line}"
        name, command = found, resolved
    assert command.make_context(name, arguments, parent=context).command is command


def blocks(language: str) -> list[tuple[Path, str]]:
    """(guide, block) of every fenced block of a language."""
    return [(guide, block) for guide in guides() for block in code_blocks(guide.read_text("utf-8"), language)]


def test_every_python_example_is_one_that_a_test_runs() -> None:
    """tests/acceptance/test_guide_examples.py runs the examples of guides with one of these words."""
    run = {guide for guide, block in blocks("python") if "open_service" in block or "base_url" in block}
    assert {guide for guide, _ in blocks("python")} == run - {guides()[0]}


@pytest.mark.parametrize("block", [block for _, block in blocks("json")])
def test_every_json_example_is_json(block: str) -> None:
    assert json.loads(block)


@pytest.mark.parametrize(("guide", "block"), blocks("yaml"), ids=lambda value: getattr(value, "name", ""))
def test_every_yaml_example_is_part_of_an_index_or_declares_readers(
    guide: Path, block: str, tmp_path: Path, checkout: Path
) -> None:
    if guide.name == "sync.md":
        (tmp_path / "readers.yaml").write_text(block, "utf-8")
        assert load_readers(tmp_path / "readers.yaml")
        return
    shutil.copytree(checkout / "indices" / "general", tmp_path / "general")
    if block.startswith("groups:"):
        (tmp_path / "general" / "synonyms.yaml").write_text(block, "utf-8")
        block = "query: {synonyms: synonyms.yaml}\n"
    (tmp_path / "general" / "index.yaml").write_text(f"name: general\ndescription: x\n{block}", "utf-8")
    load_index("general", indices_path=tmp_path)


@pytest.mark.parametrize("guide", guides(), ids=lambda guide: guide.name)
def test_every_setting_that_a_guide_names_exists(guide: Path) -> None:
    known = {setting_name(key) for key in setting_fields()} | COMPOSE_ONLY
    named = set(re.findall(r"\bRAG_[A-Z0-9_]*[A-Z0-9]\b", guide.read_text(encoding="utf-8")))
    assert named <= known


@pytest.mark.slow  # not beside the other test that runs mypy: they share its cache
def test_the_python_examples_are_well_typed(tmp_path: Path) -> None:
    """With the cache that `make types` left: seconds. The first time, the whole package is checked."""
    for guide in guides():
        for number, block in enumerate(code_blocks(guide.read_text(encoding="utf-8"), "python")):
            script = tmp_path / f"{guide.stem.replace('-', '_')}_{number}.py"
            script.write_text(f"base_url: str\nkey: str\n{block}", encoding="utf-8")
    command = [sys.executable, "-m", "mypy", *map(str, sorted(tmp_path.glob("*.py")))]
    checked = subprocess.run(command, check=False, capture_output=True, text=True, cwd=ROOT)
    errors = [line for line in checked.stdout.splitlines() if ": error: " in line]
    # What a LlamaIndex engine replies is one of four types to it, and streams in one of them.
    assert [line for line in errors if "print_response_stream" not in line] == []
    assert f"checked {len(command) - 3} source files" in checked.stdout
