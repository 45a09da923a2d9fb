"""Imports run one way through the house (CONTRIBUTING.md, "The house")."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

import rag_service

PACKAGE = Path(rag_service.__file__).parent

# A module may import from layers below its own, and from its own package.
LAYERS: list[set[str]] = [
    {"__init__", "errors", "domain", "text"},
    {"settings"},
    {"definitions", "telemetry", "tracing", "metrics"},
    {"store", "models"},
    {"ingest", "query"},
    {"bearer_tokens"},
    {"identity", "components"},
    {"api", "web", "evaluation", "bench"},
    {"keyword_app"},
    {"app"},
    {"server"},
    {"notebook", "quickstart", "checks"},
    {"cli"},
]
LAYER_OF = {name: level for level, names in enumerate(LAYERS) for name in names}
MAY_OPEN_THE_SERVICE = {"evaluation", "bench"}  # they run the product as a user would


def rooms(path: Path) -> str:
    relative = path.relative_to(PACKAGE)
    return relative.parts[0] if len(relative.parts) > 1 else relative.stem


def imported(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("rag_service"):
            parts = node.module.split(".")
            found |= {parts[1]} if len(parts) > 1 else {alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {alias.name.split(".")[1] for alias in node.names if alias.name.startswith("rag_service.")}
    return {name for name in found if not name.startswith("__")}


FILES = [path for path in sorted(PACKAGE.rglob("*.py")) if "_shipped" not in path.parts]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_imports_point_down_the_house(path: Path) -> None:
    room = rooms(path)
    assert room in LAYER_OF, f"{room} has no place in the house; give it one in LAYERS"
    for name in imported(path) - {room}:
        if room in MAY_OPEN_THE_SERVICE and name == "app":
            continue
        assert name in LAYER_OF, f"{path.name} imports {name}, which has no place in the house"
        assert LAYER_OF[name] < LAYER_OF[room], f"{room} must not import {name}"


def run_python(code: str) -> str:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("RAG_")}
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    ).stdout


def test_importing_the_package_is_quick_and_loads_no_model_library() -> None:
    output = run_python(
        "import sys, time; start = time.perf_counter(); import rag_service;"
        "print(time.perf_counter() - start, 'torch' in sys.modules, 'llama_index' in sys.modules)"
    )
    seconds, torch, llama_index = output.split()
    assert float(seconds) < 1.5
    assert (torch, llama_index) == ("False", "False")


def test_building_the_application_loads_no_torch() -> None:
    output = run_python(
        "import sys; from rag_service.app import create_app; from rag_service.settings import Settings;"
        "create_app(Settings()); print('torch' in sys.modules, 'sentence_transformers' in sys.modules)"
    )
    assert output.split() == ["False", "False"]
