"""What leaves is read as a renderer reads it: markdown-it-py, and the rule of GitHub for bare addresses."""

from __future__ import annotations

import re

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from rag_service.answering.guards.output_guard import OutputGuard, guard_name, guard_text
from tests.unit.answering.proof.answers import make_hit

URL = "https://lychee.example/map"
SECRET = "s3cret"
_BARE = re.compile(r"https?://[^\s<]+")


def addresses(text: str) -> set[str]:
    """The targets of links and images, and bare addresses as GitHub takes them: to the next white space or `<`."""
    found: set[str] = set()
    waiting: list[Token] = list(MarkdownIt("commonmark").parse(text))
    while waiting:
        token = waiting.pop()
        waiting += token.children or []
        found |= {str(token.attrs[name]) for name in ("href", "src") if name in token.attrs}
        if token.type == "text":
            found |= set(_BARE.findall(token.content))
    return found


def images(text: str) -> int:
    inline = [child for token in MarkdownIt("commonmark").parse(text) for child in token.children or []]
    return sum(token.type == "image" or (token.type == "html_inline" and "<img" in token.content) for token in inline)


def guarded(text: str) -> str:
    return guard_text(OutputGuard([make_hit(f"The map is at {URL} for all.")]), text)


@pytest.mark.parametrize("label", ["", "c", "C", " c", "chart", "C1x", "C1](x", "C 1", "c1", "C1, C2", "C1"])
def test_nothing_becomes_an_image(label: str) -> None:
    for text in (
        f"See ![{label}]({URL}) here.",
        f"See ![{label}]( {URL} ).",
        f"![{label}]<{URL}>",
        f"!![{label}]({URL})",
    ):
        assert images(guarded(text)) == 0, guarded(text)


def test_a_mark_after_an_exclamation_stays() -> None:
    assert guarded("It opens today![C1]") == "It opens today![C1]"
    assert guarded("Today![C1, C2] And so on.") == "Today![C1, C2] And so on."


@pytest.mark.parametrize("sign", list("|\\^{}\"'`]»«“”’‘>)(*_~!;,:"))
def test_a_shown_address_carries_nothing_behind_a_sign(sign: str) -> None:
    for text in (f"See {URL}{sign}{SECRET} here.", f"See [map]({URL}{sign}{SECRET}) here."):
        assert not [one for one in addresses(guarded(text)) if SECRET in one], guarded(text)


@pytest.mark.parametrize("around", ["{}", "({})", "“{}”", '"{}"', "<{}>", "{}.", "*{}*", "«{}»", "[map]({})", "{},"])
def test_a_shown_address_stays(around: str) -> None:
    assert URL in guarded(f"See {around.format(URL)} here.")
    assert "removed" not in guarded(f"See {around.format(URL)} here.")


def test_names_are_neither_images_nor_links_nor_html() -> None:
    for name in ("![p](http://a.example/x).md", "<img src=x onerror=alert(1)>.md", "[x](javascript:alert(1)).txt"):
        assert not addresses(guard_name(name)) and not images(guard_name(name)), guard_name(name)
    assert guard_name("notes.org") == "notes.org"
    assert guard_name("Report 2026 (final).pdf") == "Report 2026 (final).pdf"
