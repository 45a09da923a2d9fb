"""The words of the passage in a second line under the sentence that they show; in a real browser."""

from __future__ import annotations

import pytest

from tests.acceptance.page_actions import is_in_sight
from tests.integration.web.browser import NARROWEST, PHONE, Open, browser, comes_true, expect, visit
from tests.integration.web.conftest import serve_page

__all__ = ["browser", "serve_page", "visit"]  # fixtures

JUDGED, REWORDED, CONTRADICTED = 1, 3, 4  # badges of the answer of all kinds
LINE, TOGGLE = ".second-line", ".second-line-toggle"
WIDER = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


def test_words_stand_open_under_the_sentences_that_the_reader_has_to_compare(visit: Open) -> None:
    one = visit()
    one.ask("kinds")
    lines, toggles = one.page.locator(LINE), one.page.locator(TOGGLE)
    expect(lines, "an exact quote and what is found nowhere have none").to_have_count(4)
    assert toggles.evaluate_all("all => all.map((one) => one.ariaExpanded)") == ["false", "true", "true", "false"]
    assert lines.evaluate_all("all => all.map((one) => one.checkVisibility())") == [False, True, True, False]
    assert toggles.evaluate_all("all => all.map((one) => one.getAttribute('aria-controls'))") == lines.evaluate_all(
        "all => all.map((one) => one.id)"
    )
    expect(lines.nth(1)).to_have_text(
        "signature of both plant managers … Transfers above 500 units need a booked truck", use_inner_text=True
    )
    assert lines.nth(1).locator("b").all_inner_texts() == ["both plant managers"]
    expect(lines.nth(2), "with the words that say which is which").to_have_text(
        "Guide: The answer says: 600 Passage: 500 units"
    )
    assert [lines.nth(2).locator(name).inner_text().split()[-1] for name in ("del", "ins")] == ["600", "500"]
    assert lines.nth(2).locator("del").evaluate("one => getComputedStyle(one).textDecorationLine") == "line-through"
    sentence, line = one.badge(REWORDED).bounding_box(), lines.nth(1).bounding_box()
    assert sentence and line and sentence["y"] + sentence["height"] <= line["y"]


def test_pointing_at_a_mark_shows_its_words_and_a_press_keeps_them(visit: Open) -> None:
    one = visit()
    one.ask("kinds")
    line, toggle = one.page.locator(LINE).first, one.page.locator(TOGGLE).first
    one.badge(JUDGED).hover()
    expect(line).to_be_visible()
    expect(line).to_have_attribute("id", str(toggle.get_attribute("aria-controls")))
    expect(line.locator("[lang=fr]")).to_contain_text("97,4 %")
    expect(one.page.locator("#tooltip")).to_contain_text("Checked by llama3.2")
    expect(one.page.locator("#tooltip blockquote"), "the same words twice").to_have_count(0)
    one.page.mouse.move(5, 5)
    expect(line).to_be_hidden()
    one.badge(JUDGED).hover()
    expect(line).to_be_visible()
    toggle.click()
    one.page.mouse.move(5, 5)
    expect(one.page.locator("#tooltip")).to_be_hidden()
    expect(line).to_be_visible()
    expect(toggle).to_have_attribute("aria-expanded", "true")
    toggle.click()
    expect(line).to_be_hidden()
    expect(toggle).to_have_attribute("aria-expanded", "false")
    one.badge(JUDGED).click()
    one.page.wait_for_selector("#panel mark")


def test_the_keyboard_shows_the_words_and_keeps_them(visit: Open) -> None:
    one = visit()
    one.ask("kinds")
    line, toggle = one.page.locator(LINE).first, one.page.locator(TOGGLE).first
    one.badge(JUDGED - 1).focus()
    one.page.keyboard.press("Tab")
    expect(one.badge(JUDGED)).to_be_focused()
    expect(line).to_be_visible()
    one.page.keyboard.press("Escape")
    expect(line).to_be_hidden()
    one.page.keyboard.press("Tab")
    expect(toggle).to_be_focused()
    expect(toggle).to_have_accessible_name("Words of the passage")
    one.page.keyboard.press("Enter")
    expect(line).to_be_visible()
    one.page.keyboard.press("Enter")
    expect(line).to_be_hidden()


def test_a_tap_shows_the_words_and_a_second_one_the_source(visit: Open) -> None:
    one = visit(size=PHONE, has_touch=True)
    one.ask("kinds")
    one.badge(JUDGED).tap()
    expect(one.page.locator(LINE).first).to_be_visible()
    expect(one.page.locator("#panel")).to_be_hidden()
    one.badge(JUDGED).tap()
    one.page.wait_for_selector("#panel mark")
    one.page.keyboard.press("Escape")
    one.badge(0).tap()
    one.page.wait_for_selector("#panel mark")  # a quote has no other words


@pytest.mark.parametrize("size", [NARROWEST, PHONE], ids=["narrowest", "phone"])
def test_a_wrong_figure_is_amber_and_the_verdict_leads_to_its_sentence(visit: Open, size: tuple[int, int]) -> None:
    one = visit(size=size)
    one.ask("wrong figure")
    expect(one.badge(1)).to_contain_text("figure differs")
    tone = "one => getComputedStyle(one).getPropertyValue('--tone')"
    assert one.badge(1).evaluate(tone) != one.badge(0).evaluate(tone), "not as a harmless change of words"
    expect(one.page.locator(".legend")).to_contain_text("Figure differs:")
    expect(one.page.locator(LINE).first, "without signs of emphasis").to_have_text(
        "A transfer needs the signature of both plant managers."
    )
    line = one.page.locator(LINE).nth(1)
    assert [line.locator(name).inner_text().split()[-1] for name in ("del", "ins")] == ["730", "500"]
    one.page.locator(TOGGLE).nth(1).click()
    expect(line).to_be_hidden()
    one.page.evaluate("scrollTo(0, document.body.scrollHeight)")
    verdict = one.page.locator(".decision button")
    expect(verdict).to_have_text("Some sentences are not proved by their source. “730” is not in the passage.")
    verdict.focus()
    one.page.keyboard.press("Enter")
    sentence = one.page.locator(".flag-differs")
    expect(sentence).to_be_focused()
    expect(sentence).to_contain_text("above 730 units")
    assert comes_true(one.page, lambda: is_in_sight(one.page, ".flag-differs"))
    expect(line).to_be_visible()
    assert one.page.evaluate(WIDER) <= 0


@pytest.mark.parametrize(
    ("locale", "name", "differs"),
    [
        ("es-ES", "Palabras del pasaje", "cifra distinta"),
        ("fr-FR", "Mots du passage", "chiffre différent"),
        ("pt-PT", "Palavras da passagem", "número diferente"),
        ("de-DE", "Worte der Passage", "Zahl weicht ab"),
        ("it-IT", "Parole del passaggio", "cifra diversa"),
    ],
)
def test_the_second_line_is_named_in_the_language_of_the_page(
    visit: Open, locale: str, name: str, differs: str
) -> None:
    one = visit(locale=locale)
    one.ask("wrong figure")
    expect(one.page.locator(TOGGLE).first).to_have_accessible_name(name)
    expect(one.badge(1)).to_contain_text(differs)
    one.page.locator(".decision button").click()
    expect(one.page.locator(".flag-differs")).to_be_focused()
