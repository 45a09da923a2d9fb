"""How the page proves an answer: badges, why, the source beside it; in a real browser."""

from __future__ import annotations

from typing import Any

import pytest

from tests.acceptance.page_actions import is_in_sight
from tests.integration.web.browser import PHONE, WIDE, Open, browser, comes_true, expect, visit
from tests.integration.web.conftest import serve_page
from tests.integration.web.scenes import REPORT, STOPPED

__all__ = ["browser", "serve_page", "visit"]  # fixtures


MARKED = "#panel mark"


def test_question_is_answered_with_badges_that_name_place_and_status(visit: Open) -> None:
    one = visit()
    one.ask("stock in Lyon?")
    texts = one.page.locator(".badge").evaluate_all("badges => badges.map(badge => badge.textContent)")
    assert texts == [
        "production.xlsx · Stocks!B11 reworded",
        "rapport.pdf · p. 3",
        "guide.md · Requirements",
        "Requirements other passage",  # of the document before
        "guide.md not found",
    ]
    names = one.page.locator(".badge").evaluate_all("badges => badges.map(badge => badge.ariaLabel)")
    assert names[0] == "production.xlsx · Stocks!B11 reworded, sheet Stocks, cell B11"
    assert names[3] == "Requirements other passage, guide.md, section Moving stock › Requirements"
    expect(one.page.locator(".sources li"), "each document once").to_have_count(3)
    assert one.page.locator(".answer-text .flag-misplaced").inner_text().endswith("need a booked truck.")
    expect(one.page.locator(".answer-text .flag-unverified")).to_contain_text("costs nothing", use_inner_text=True)
    expect(one.page.locator(".answer-text .flag-unmarked")).to_contain_text("Geneva", use_inner_text=True)
    expect(one.page.locator(".legend li"), "what proves needs no legend").to_have_count(4)
    one.page.click(".why summary")
    told = one.page.locator(".why .facts").inner_text()
    assert "exact quote (2) · reworded (1) · other passage (1) · not found (1)" in told


def test_the_steps_of_a_model_stand_above_its_answer(visit: Open) -> None:
    one = visit()
    one.ask("steps")
    lines = one.page.locator(".steps li").all_inner_texts()
    assert lines == ["Searched for “stock in Lyon”: new passages: 0", "Read “guide.md”: new passages: 1"]
    steps, answer = (one.page.locator(name).first.bounding_box() for name in (".steps", ".answer-text"))
    assert steps and answer and steps["y"] < answer["y"]


def test_proof_and_its_lack_are_told_apart_by_colour_shape_and_words(visit: Open) -> None:
    one = visit()
    one.ask("kinds")
    shown = one.page.locator(".badge").evaluate_all(
        "badges => badges.map(badge => [badge.dataset.status, getComputedStyle(badge).getPropertyValue('--tone'),"
        " badge.querySelector('.status-icon use').getAttribute('href'), badge.ariaLabel])"
    )
    words = ["exact quote", "checked by llama3.2", "computed", "reworded", "contradicted", "other passage", "not found"]
    assert all(word in line[3] for word, line in zip(words, shown, strict=True))
    tones = [line[1] for line in shown]
    assert tones[0] == tones[1] == tones[2] and tones[4] == tones[6]
    assert len({tones[0], tones[3], tones[4], tones[5]}) == 4
    assert len({line[2] for line in shown}) == 5  # one shape for proof, one for each lack of it
    flags = {kind: one.page.locator(f".flag-{kind}").count() for kind in ("reworded", "unverified", "misplaced")}
    assert flags == {"reworded": 1, "unverified": 2, "misplaced": 1}
    legend = one.page.locator(".legend").inner_text()
    for line in ("compare with the source", "Contradicted:", "Other passage:", "Not found:"):
        assert line in legend
    assert "Exact quote" not in legend, "what proves needs no legend"
    (verdict,) = one.page.locator(".decision").all_inner_texts()
    assert verdict.startswith("Uncertain.") and "The source says: “500 units”" in verdict
    question, answer = (one.page.locator(name).first.bounding_box() for name in (".asked", ".answer-text"))
    place = one.page.locator(".decision").bounding_box()
    assert question and answer and place and question["y"] < place["y"] < answer["y"]


@pytest.mark.parametrize(
    ("badge", "said"),
    [
        (1, ("Checked by llama3.2: the passage says this in other words.", "97,4 %")),
        (2, ("Computed: the figure follows", "4200 + 2950 = 7150")),
        (3, ("Reworded: compare with the source.", "signature of both plant managers")),
        (4, ("Contradicted: the source says something else.", "The source says: “500 units”")),
    ],
)
def test_source_beside_the_answer_says_how_it_was_proved_or_what_differs(
    visit: Open, badge: int, said: tuple[str, str]
) -> None:
    one = visit()
    one.ask("kinds")
    one.badge(badge).click()
    one.page.wait_for_selector(MARKED)
    panel = one.page.locator("#panel").inner_text()
    assert all(line in panel for line in said)


def test_context_of_a_quote_is_cut_at_words(visit: Open) -> None:
    one = visit()
    one.ask("kinds")
    one.badge(1).click()
    one.page.wait_for_selector(MARKED)
    shown = one.page.locator("#panel .passage-text").inner_text().split()
    whole = REPORT.chunk.text.split()
    assert shown[0] in whole and shown[-1] in whole
    assert len(shown) < len(whole)


def test_why_shows_decision_confidence_time_and_scores(visit: Open) -> None:
    one = visit()
    one.ask("stock")
    one.page.click(".why summary")
    shown = one.page.locator(".why").inner_text()
    for fact in (
        "Checked against the documents",
        "0.87",
        "1.8 s",
        "rapport.pdf, page 2",
        "0.94",
    ):
        assert fact in shown
    assert "extractive" not in shown, "figures for operators are the administrators'"
    one.page.evaluate("document.documentElement.classList.add('is-administrator')")
    shown = one.page.locator(".why").inner_text()
    assert "extractive" in shown and "1,240 + 96" in shown


@pytest.mark.parametrize(
    ("locale", "reason", "confidence"),
    [
        ("en-US", "At least one source does not say what the answer says.", "Confidence"),
        ("es-ES", "Al menos una fuente no dice lo que dice la respuesta.", "Confianza"),
        ("fr-FR", "Au moins une source ne dit pas ce que dit la réponse.", "Confiance"),
        ("pt-PT", "Pelo menos uma fonte não diz o que a resposta diz.", "Confiança"),
    ],
)
def test_uncertain_answer_says_why_and_shows_no_number(visit: Open, locale: str, reason: str, confidence: str) -> None:
    one = visit(locale=locale)
    one.ask("kinds")
    for told in (".decision", "#status"):
        expect(one.page.locator(told), "at once, in a short sentence").to_contain_text(reason, use_inner_text=True)
    one.page.click(".why summary")
    assert confidence not in one.page.locator(".why .facts").inner_text(), "a high number would contradict it"
    one.ask("stock")
    one.page.locator(".why summary").last.click()
    expect(one.page.locator(".why .facts").last).to_contain_text(confidence, use_inner_text=True)


def test_places_of_passages_are_in_the_language_of_the_page(visit: Open) -> None:
    one = visit(locale="es-ES")
    one.ask("nothing")
    expect(one.page.locator(".related summary").first).to_contain_text("rapport.pdf, página 2", use_inner_text=True)
    one = visit(locale="fr-FR")
    one.ask("stock")
    one.page.click(".why summary")
    expect(one.page.locator(".passage-head").first).to_contain_text(
        "production.xlsx, feuille Stocks", use_inner_text=True
    )


@pytest.mark.parametrize("size", [WIDE, pytest.param(PHONE, marks=pytest.mark.slow)], ids=["wide", "phone"])
@pytest.mark.parametrize(
    ("badge", "name", "quote"),
    [(0, "production.xlsx", "4200"), (1, "rapport.pdf", "97,4 %"), (2, "guide.md", "signature of both plant managers"),
     (3, "guide.md", "need a booked truck")],
)  # fmt: skip
def test_badge_opens_the_source_at_the_quote(visit: Open, size: Any, badge: int, name: str, quote: str) -> None:
    one = visit(size=size)
    one.ask("stock")
    one.badge(badge).click()
    one.page.wait_for_selector(MARKED)
    expect(one.page.locator("#panel-title")).to_have_text(name, use_inner_text=True)
    assert quote in " ".join(one.page.locator(MARKED).all_inner_texts())
    assert comes_true(one.page, lambda: is_in_sight(one.page, MARKED))
    one.page.keyboard.press("Escape")
    one.page.wait_for_selector("#panel", state="hidden")
    expect(one.badge(badge)).to_be_focused()


def test_a_source_that_is_opened_as_soon_as_another_is_closed_stays(visit: Open) -> None:
    one = visit()
    one.ask("stock")
    one.badge(1).click()
    one.page.wait_for_selector(MARKED)
    one.page.evaluate(
        """() => {
            document.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape" }));
            document.querySelector(".badge").click();
        }"""
    )
    one.page.wait_for_selector(f"{MARKED}:has-text('4200')")
    one.page.evaluate("() => new Promise(requestAnimationFrame)")  # the end of the first one has been told
    expect(one.page.locator("body.has-panel .badge").first).to_have_attribute("aria-expanded", "true")


def test_more_of_the_document_can_be_read(visit: Open) -> None:
    one = visit()
    one.ask("stock")
    one.badge(1).click()
    one.page.click("text=Show later text")
    one.page.wait_for_selector("text=Show later text", state="detached")
    one.page.click("text=Show earlier text")
    one.page.wait_for_selector("#panel >> text=Rapport trimestriel")
    expect(one.page.locator(MARKED)).to_contain_text("97,4 %", use_inner_text=True)


def test_unfounded_sentence_shows_what_it_named(visit: Open) -> None:
    one = visit()
    one.ask("stock")
    one.badge(4).click()
    for words in ("Not found", "costs nothing", "Moving stock"):
        expect(one.page.locator("#panel")).to_contain_text(words, use_inner_text=True)


def test_tooltip_on_hover_and_on_focus_and_away_with_escape(visit: Open) -> None:
    one = visit()
    one.ask("stock")
    tooltip = one.page.locator("#tooltip")
    one.badge(1).hover()
    tooltip.wait_for(state="visible")
    assert "rapport.pdf, page 3" in tooltip.inner_text() and "97,4 %" in tooltip.inner_text()
    expect(tooltip).to_contain_text("Exact quote", use_inner_text=True)
    one.page.mouse.move(5, 5)
    tooltip.wait_for(state="hidden")
    one.page.focus("body")
    one.page.locator(".second-line-toggle").first.focus()
    one.page.keyboard.press("Tab")
    tooltip.wait_for(state="visible")
    expect(one.badge(1)).to_have_attribute("aria-describedby", "tooltip")
    one.page.keyboard.press("Escape")
    tooltip.wait_for(state="hidden")
    one.page.keyboard.press("Enter")
    one.page.wait_for_selector(MARKED)
    one.page.keyboard.press("Escape")
    one.page.wait_for_selector("#panel", state="hidden")
    expect(one.badge(1)).to_be_focused()
    assert tooltip.is_hidden()


def test_what_the_service_says_stands_outside_the_text_and_quotes_say_their_language(visit: Open) -> None:
    one = visit()
    one.ask("notes")
    notes = one.page.locator(".answer-text .note")
    assert notes.all_inner_texts() == [
        "[A sentence was left out because no document supports it.]",
        STOPPED,
    ]
    assert notes.evaluate_all("notes => notes.every((note) => getComputedStyle(note).display === 'block')")
    feigned = one.page.locator(".answer-text .flag-unmarked")
    expect(feigned, "it is asked for proof").to_have_text(
        ["(without a citation)\nSearched: parking is free."], use_inner_text=True
    )
    assert one.page.locator(".answer-text > [lang=fr]").all_inner_texts()[0].startswith("Le taux de service")
    one.badge(1).click()
    one.page.wait_for_selector("#panel .panel-passage[lang=fr] mark")


def test_all_words_that_a_sentence_rests_on_are_one_press_away_where_they_stand(visit: Open) -> None:
    one = visit()
    one.ask("kinds")
    one.badge(3).click()
    expect(one.page.locator(MARKED)).to_have_text("signature of both plant managers")
    words = one.page.locator("#panel .panel-words button")
    assert words.all_inner_texts() == [
        "“signature of both plant managers”, Requirements",
        "“Transfers above 500 units need a booked truck”, Requirements",
    ]
    words.nth(1).click()
    expect(one.page.locator(MARKED)).to_have_text("Transfers above 500 units need a booked truck")
    assert words.evaluate_all("all => all.map((one) => one.ariaPressed)") == ["false", "true"]
    one.page.keyboard.press("Escape")
    one.badge(0).click()
    one.page.wait_for_selector(MARKED)
    expect(words, "one quote needs no list").to_have_count(0)


def test_a_tooltip_stands_beside_the_text_and_does_not_come_back_after_escape(visit: Open) -> None:
    one = visit()
    one.ask("stock")
    one.badge(1).hover()
    one.page.wait_for_selector("#tooltip blockquote[lang=fr]")
    tip, text = (one.page.locator(name).bounding_box() for name in ("#tooltip", ".answer-text"))
    assert tip and text and tip["x"] >= text["x"] + text["width"]
    one.page.mouse.move(tip["x"] + 20, tip["y"] + 20)  # it can be pointed at
    one.page.wait_for_timeout(800)
    expect(one.page.locator("#tooltip")).to_be_visible()
    one.page.keyboard.press("Escape")
    expect(one.page.locator("#tooltip")).to_be_hidden()
    one.badge(1).focus()
    one.page.keyboard.press("Enter")
    one.page.wait_for_selector(MARKED)
    one.page.keyboard.press("Escape")
    one.page.wait_for_selector("#panel", state="hidden")
    one.page.wait_for_timeout(300)
    expect(one.page.locator("#tooltip")).to_be_hidden()
