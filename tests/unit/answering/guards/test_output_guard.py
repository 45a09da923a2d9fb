"""The output guard: foreign links and text of the prompt, however the answer is cut into pieces."""

from __future__ import annotations

import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_service.answering.guards.output_guard import LeakFilter, LinkFilter, OutputGuard, find_urls, guard_text
from tests.unit.answering.proof.answers import make_hit

ALLOWED = "https://ok.example/form"
PROMPT = (
    "You answer questions from the passages below and from nothing else.\n\nRules:\n"
    "1. Use only what the passages say. Do not add knowledge of your own, and do not guess.\n"
    "2. Copy numbers, dates, amounts and names exactly as they stand in the passage."
)


def filtered(text: str, cuts: list[int] | None = None) -> str:
    links, out, position = LinkFilter(lambda url: url == ALLOWED), "", 0
    for cut in cuts or []:
        out += links.feed(text[position:cut])
        position = cut
    return out + links.feed(text[position:]) + links.flush()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("See [here](https://evil.test/x?d=1) [C1].", "See [here] (‹link removed›) [C1]."),
        ("![x](//evil.com/p.png) done", "[x] (‹link removed›) done"),
        ("Visit www.evil.org, or evil.com.", "Visit ‹link removed›, or ‹link removed›."),
        ("<https://evil.net/a_(b)> ok", "‹‹link removed›> ok"),
        ("[a](javascript:alert(1)) [b](/admin?x=1)", "[a] (‹link removed›) [b] (/admin?x=1)"),
        ("[C1]: https://evil.io/x\n[C2]: /a\nA [C1].", "[C1] : ‹link removed›\n[C2] : /a\nA [C1]."),
        ("<img src=x onerror=alert(1)> <b>bold</b>", "‹img src=x onerror=alert(1)> ‹b>bold‹/b>"),
        ("<!-- x --><svg/onload=a>", "‹!-- x -->‹svg/onload=a>"),
        ("ht\u200btps://evil.com/a", "‹link removed›"),
        ("mail me: a@evil.com", "mail me: ‹link removed›"),
        ("10.0.0.1/steal and 1.2.3.4", "‹link removed› and 1.2.3.4"),
    ],
)
def test_foreign_links_images_and_html_are_taken_out(text: str, expected: str) -> None:
    assert filtered(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        f"[the form]({ALLOWED}) and {ALLOWED}.",
        "Refunds take 14 days [C1][C2]; see report.pdf, sheet A1:B2 and 3.5 % (e.g. and/or 24/7, 1/2/2025).",
        "List<String> x < 3, y > 2, a | b, today![C1] Sí.",
        "**Bold** _it_ `code[0](x)` | a | b |\n1. One\n- two",
    ],
)
def test_everything_else_stays_as_it_is(text: str) -> None:
    assert filtered(text).replace("] (x)", "](x)") == text


def test_a_url_must_be_the_very_one() -> None:
    assert filtered(f"{ALLOWED}?leak=1") == "‹link removed›"
    assert find_urls(f"Fill in ({ALLOWED}).") == {ALLOWED}


_PIECES = st.lists(
    st.one_of(
        st.text(alphabet="ab [](){}<>!:/.\n`*C1", max_size=12),
        st.sampled_from(
            ["https://evil.test/x", "](", "![", "[C1]", "<img ", "www.", "evil.com", "](//evil.com)", ALLOWED]
        ),
    ),
    max_size=10,
).map("".join)


@given(text=_PIECES, seed=st.integers(0, 1000))
def test_the_pieces_do_not_matter_and_nothing_foreign_passes(text: str, seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311 - test data
    cuts = sorted(rng.randint(0, len(text)) for _ in range(4))
    whole = filtered(text)
    assert filtered(text, cuts) == whole
    assert find_urls(whole) <= {ALLOWED}
    assert not re.search(r"\]\((?!https://ok)|<img|!\[(?![cC\s])", whole)
    assert filtered(whole) == whole


def test_little_is_held_back() -> None:
    links = LinkFilter(lambda url: False)
    assert links.feed("The refund takes ") == "The refund takes "
    assert links.feed("14 days [C1") == "14 days "
    assert links.feed("]. ") == "[C1]. "


def leaks(text: str) -> str:
    found = LeakFilter(PROMPT, notice="[X]")
    return "".join(found.feed(character) for character in text) + found.flush()


@pytest.mark.parametrize("spell", [str, str.upper, " ".join, lambda text: re.sub(r"\W+", "-", text)])
def test_the_prompt_is_not_repeated_however_it_is_spelt(spell: object) -> None:
    shown = leaks(f"{spell(PROMPT)}.\n\nRefunds take 14 days [C1].")  # type: ignore[operator]
    said = "".join(filter(str.isalpha, shown.lower()))
    secret = "".join(filter(str.isalpha, PROMPT.lower()))
    assert not any(secret[i : i + 20] in said for i in range(len(secret) - 20))
    assert "Refunds take 14 days [C1]." in shown
    assert "[X]" in shown


def test_only_the_sentence_that_repeats_it_is_left_out() -> None:
    text = "The fee is $75 [C1]. My rule is: use only what the passages say, do not add knowledge. It ends in May [C2]."
    assert leaks(text) == "The fee is $75 [C1]. My rule is: [X] It ends in May [C2]."


def test_a_few_common_words_are_no_leak() -> None:
    text = "Copy numbers and dates. The passages say that you answer questions from the form."
    assert leaks(text) == text


def test_a_boundary_is_a_secret_of_its_own() -> None:
    guard = OutputGuard([], secrets=["~abcdef012345~"], notice="[X]")
    assert "abcdef012345" not in guard_text(guard, "The line is ~abcdef012345~ here. Next.")
    assert len(guard.leaks) == 1


def test_the_guard_allows_what_the_passages_hold() -> None:
    guard = OutputGuard([make_hit(f"Use {ALLOWED} to apply.")])
    assert guard_text(guard, f"Use {ALLOWED} or http://other.test [C1].") == f"Use {ALLOWED} or ‹link removed› [C1]."
    assert len(guard.changes) == 1


@pytest.mark.parametrize("scheme", ["javascript", "JavaScript", "vbscript", "data", "file", "blob"])
def test_a_link_that_runs_or_reads_something_is_none_although_a_document_has_it(scheme: str) -> None:
    link = f"[help]({scheme}:alert(1))"
    guard = OutputGuard([make_hit(f"See {link}.")], language="en")
    assert guard_text(guard, f"See {link} [C1].") == f"See [help] ({scheme}:alert(1)) [C1]."


@pytest.mark.parametrize("scheme", ["javascript", "JavaScript", "vbscript", "data", "file", "blob"])
def test_an_address_in_angle_brackets_that_runs_something_is_no_link(scheme: str) -> None:
    guard = OutputGuard([make_hit(f"See <{scheme}:alert(1)>.")], language="en")
    assert guard_text(guard, f"See <{scheme}:alert(1)> [C1].") == f"See ‹{scheme}:alert(1)> [C1]."
