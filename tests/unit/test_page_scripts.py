"""The checks of the page's scripts (`make lint types`) find faults, and know the page's elements for what they are."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

FAULTY = """
import { el, byId, nothing } from "{dom}";
export const isSame = (one, other) => one == other;
export const box = () => el("buton", {}, byId("question").valeu);
export const badge = () => el("span", {}, false, nowhere);
const unused = 1;
"""
DENO = Path(sys.executable).with_name("deno")
CLASSES = {
    "a": "Anchor", "button": "Button", "details": "Details", "dialog": "Dialog", "form": "Form", "input": "Input",
    "select": "Select", "template": "Template", "textarea": "TextArea",
}  # fmt: skip


@pytest.mark.slow  # starts TypeScript
@pytest.mark.parametrize(
    ("command", "found"),
    [("lint", {"eqeqeq", "no-unused-vars"}), ("check", {"TS2305", "TS2304", "TS2345", "TS2551"})],
)
def test_the_checks_of_the_scripts_find_faults(command: str, found: set[str], checkout: Path, tmp_path: Path) -> None:
    script = tmp_path / "faulty.js"
    dom = (checkout / "rag_service" / "web" / "static" / "dom.js").as_uri()
    script.write_text(FAULTY.replace("{dom}", dom), encoding="utf-8")
    config = checkout / "tests" / "javascript" / "deno.json"
    done = subprocess.run(
        [DENO, command, "--config", config, script],
        capture_output=True, text=True, check=False,
        env=os.environ | {"DENO_DIR": str(tmp_path), "DENO_NO_UPDATE_CHECK": "1", "NO_COLOR": "1"},
    )  # fmt: skip
    assert done.returncode == 1
    assert found <= set(re.findall(r"TS\d+|(?<=error\[)[a-z-]+", done.stderr))


def test_elements_have_the_types_of_the_templates(checkout: Path) -> None:
    declared = (checkout / "tests" / "javascript" / "page.d.ts").read_text(encoding="utf-8")
    listed = declared.partition("interface PageElements {")[2].partition("}")[0]
    types = dict(re.findall(r'"?([\w-]+)"?: HTML(\w+)Element;', listed))
    templates = (checkout / "rag_service" / "web" / "templates").glob("*.html")
    tags = {
        name: tag
        for template in templates
        for tag, name in re.findall(r'<(\w+)[^>]*?\sid="([\w-]+)"', template.read_text(encoding="utf-8"))
    }
    assert types == {name: CLASSES.get(tags[name]) for name in types}
    assert len(types) == listed.count(";") > 10
