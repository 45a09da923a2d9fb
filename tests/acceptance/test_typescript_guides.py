"""The TypeScript guides: types made of our description; the examples are checked, and run against the real service."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.acceptance.test_guide_examples import SHOWN, service
from tests.documents import ROOT, code_blocks

PACKAGES = Path(os.environ.get("TYPESCRIPT_PACKAGES", "")) / "node_modules"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (PACKAGES / "openapi-typescript").is_dir(),
        reason="TYPESCRIPT_PACKAGES is not the folder where `npm install openapi-typescript openapi-fetch` was run",
    ),
]

__all__ = ["service"]  # a fixture

DENO = Path(sys.executable).with_name("deno")


def run_deno(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        [DENO, *arguments],
        capture_output=True, text=True, check=False, cwd=folder, timeout=300,
        env=os.environ | {"DENO_DIR": str(folder / "deno"), "DENO_NO_UPDATE_CHECK": "1", "NO_COLOR": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


def write_types(folder: Path, url: str) -> None:
    """rag.d.ts in a folder with the packages of npm."""
    (folder / "node_modules").symlink_to(PACKAGES)
    (folder / "package.json").write_text('{"type": "module"}', encoding="utf-8")
    generator = "node_modules/openapi-typescript/bin/cli.js"
    run_deno(folder, "run", "-A", generator, f"{url}/schema/openapi.json", "--output", "rag.d.ts")


def test_the_examples_are_well_typed_and_run(service: tuple[str, str], tmp_path: Path) -> None:
    url, key = service
    write_types(tmp_path, url)
    printed = {}
    for name in ("typescript", "typescript-stream"):
        guide = (ROOT / "docs" / "how-to" / f"{name}.md").read_text(encoding="utf-8")
        script = tmp_path / f"{name}.ts"
        script.write_text("\n".join(code_blocks(guide, "ts")).replace(SHOWN, url).replace("KEY", key), encoding="utf-8")
        run_deno(tmp_path, "check", script.name)
        printed[name] = run_deno(tmp_path, "run", "-A", script.name)
    for shown in ("answer can_proceed", "[C1] verified Plan loans"):
        assert shown in printed["typescript"], printed
    assert printed["typescript"].count("bicycles.txt indexed") == 2, printed  # after the upload, and in the list
    assert "[C1] verified" in printed["typescript-stream"]
    assert printed["typescript-stream"].count("origination fee") == 2, printed  # as the final answer, and in pieces


def test_a_wrong_field_is_an_error_of_the_compiler(service: tuple[str, str], tmp_path: Path) -> None:
    write_types(tmp_path, service[0])
    script = """
import createClient from "openapi-fetch";
import type { paths } from "./rag.d.ts";
const rag = createClient<paths>();
const path = { corpus_id: "c" };
const body = { query: "?", filter: { field: "year", operator: ">=", value: 2023 } };
await rag.POST("/api/v1/query/answer", { body });
await rag.GET("/api/v1/corpora/{corpus_id}/documents", { params: { path, query: { sort: "oldest" } } });
"""
    (tmp_path / "wrong.ts").write_text(script, encoding="utf-8")
    with pytest.raises(AssertionError, match="oldest"):
        run_deno(tmp_path, "check", "wrong.ts")
    (tmp_path / "right.ts").write_text(script.replace("oldest", "newest"), encoding="utf-8")
    run_deno(tmp_path, "check", "right.ts")
