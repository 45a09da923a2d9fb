"""The guides match the code: every command parses and every setting exists."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from rag_service.cli import main
from rag_service.settings import setting_fields, setting_name
from tests.documents import code_blocks, guides

COMPOSE_ONLY = {"RAG_DB_PASSWORD", "RAG_DB_OWNER_PASSWORD"}  # read by compose.yaml, not by the service
EXAMPLES = {"<answer id>": "00000000-0000-4000-8000-000000000001", "<id>": "00000000-0000-4000-8000-000000000001"}


def commands() -> list[tuple[str, str]]:
    """(guide, command line) of every command in the guides."""
    found = []
    for guide in guides():
        text = guide.read_text(encoding="utf-8")
        lines = [line for block in code_blocks(text, "sh") for line in block.splitlines()]
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


@pytest.mark.parametrize("guide", guides(), ids=lambda guide: guide.name)
def test_every_setting_that_a_guide_names_exists(guide: Path) -> None:
    known = {setting_name(key) for key in setting_fields()} | COMPOSE_ONLY
    named = set(re.findall(r"\bRAG_[A-Z0-9_]*[A-Z0-9]\b", guide.read_text(encoding="utf-8")))
    assert named <= known
