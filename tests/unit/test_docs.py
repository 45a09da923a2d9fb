"""The documentation site builds without warnings and network, and its reference pages match the code."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from docs.reference.generate import FOLDER, pages
from tests.documents import DOCS, ROOT, SITE

DECISIONS = sorted((DOCS / "decisions").glob("[0-9]*.md"))
# What a browser fetches on its own; links that a reader clicks may lead anywhere.
FETCHED = re.compile(r'<(?:script|img|iframe)[^>]+src="(?:https?:)?//|<link[^>]+href="(?:https?:)?//(?!127\.0\.0\.1)')


@pytest.mark.slow
def test_the_site_builds_strictly_and_loads_nothing_from_other_hosts(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--config-file", SITE, "--site-dir", tmp_path]
    built = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, cwd=ROOT)
    assert built.returncode == 0, built.stderr
    made = list(tmp_path.rglob("*.html"))
    assert len(made) > 40
    for page in made:
        text = page.read_text(encoding="utf-8")
        assert not FETCHED.search(text), page
        assert 'class="mermaid"' not in text, f"{page}: the theme loads mermaid from another host; draw an SVG"
    assert not list(tmp_path.rglob("*.py"))


@pytest.mark.parametrize("name", sorted(pages()))
def test_a_reference_page_matches_the_code(name: str) -> None:
    assert (FOLDER / name).read_text(encoding="utf-8") == pages()[name], "run `make reference`"


@pytest.mark.parametrize("page", DECISIONS, ids=lambda page: page.stem)
def test_a_decision_says_why_at_what_cost_and_what_was_measured(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    missing = [part for part in ("Context", "Decision", "Cost", "Measurement") if f"\n## {part}\n" not in text]
    assert not missing
    assert f"({page.name})" in (DOCS / "decisions" / "index.md").read_text(encoding="utf-8"), "add it to index.md"


def test_decisions_have_numbers_of_their_own() -> None:
    numbers = [page.name[:3] for page in DECISIONS]
    assert len(numbers) == len(set(numbers)) > 15


def test_every_function_on_the_way_through_the_code_exists() -> None:
    named = re.findall(r"`([\w/]+\.py)` `([\w.]+)`", (DOCS / "code-paths.md").read_text(encoding="utf-8"))
    missing = [f"{module} {name}" for module, name in named if name not in _defined_in(ROOT / "rag_service" / module)]
    assert len(named) > 40
    assert not missing


def _defined_in(module: Path) -> set[str]:
    """Functions, classes and `Class.method`."""
    found = set()
    for node in ast.parse(module.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            found |= {
                f"{node.name}.{one.name}"
                for one in node.body
                if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)
            }
    return found


def test_contributing_stays_short() -> None:
    assert (ROOT / "CONTRIBUTING.md").stat().st_size <= 8 * 1024


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"])
def test_every_link_to_a_file_leads_somewhere(name: str) -> None:
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", (ROOT / name).read_text(encoding="utf-8")):
        assert (ROOT / target).exists(), f"{name} links to {target}"
