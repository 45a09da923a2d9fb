"""A question and its answer on the page, in a real browser."""

from __future__ import annotations

from tests.integration.web.browser import Open, browser, expect, visit
from tests.integration.web.conftest import serve_page
from tests.integration.web.scenes import Scene

__all__ = ["browser", "serve_page", "visit"]  # fixtures


def test_answer_streams_and_stop_keeps_what_there_is(visit: Open) -> None:
    one = visit(Scene(held=True))
    one.ask("stock", until=".badge")
    expect(one.page.locator(".answer")).to_have_attribute("aria-busy", "true")
    expect(one.badge(0)).to_have_attribute("data-status", "checking")
    one.page.fill("#question", "the next one")
    one.page.keyboard.press("Enter")
    expect(one.page.locator("#question-hint")).to_contain_text("still being written", use_inner_text=True)
    one.page.click("#stop")
    one.page.wait_for_selector(".notice-info")
    expect(one.page.locator(".answer-text")).to_contain_text("plant in Lyon", use_inner_text=True)
    expect(one.badge(0)).to_have_attribute("data-status", "pending")
    expect(one.page.locator("#send")).to_be_visible()
    expect(one.page.locator("#question")).to_have_value("the next one")


def test_several_questions_stay_through_a_reload_and_a_change_of_language(visit: Open) -> None:
    one = visit()
    one.ask("stock")
    one.ask("nothing")
    one.page.fill("#question", "half a thought")
    one.page.click(".languages a[lang=fr]")
    one.page.wait_for_selector("html.is-started[lang=fr]")
    asked = one.page.locator(".turn h2").evaluate_all("headings => headings.map(one => one.textContent)")
    assert asked == ["Question: stock", "Question: nothing"]
    expect(one.page.locator("#question")).to_have_value("half a thought")
    expect(one.page.locator(".decision").first).to_have_text("Vérifié dans les documents", use_inner_text=True)


def test_where_nothing_is_found_the_nearest_passages_can_be_read(visit: Open) -> None:
    one = visit()
    one.ask("nothing")
    nearest = one.page.locator(".related")
    expect(nearest.locator("summary").first).to_contain_text("rapport.pdf, page 2", use_inner_text=True)
    expect(nearest).to_have_count(2)
    text = nearest.first.locator(".passage-text")
    assert not text.is_visible()
    nearest.first.locator("summary").click()
    expect(text).to_contain_text("taux de service", use_inner_text=True)
    nearest.nth(1).locator("summary").click()
    assert one.page.evaluate("window.hacked") is None
    assert one.page.locator(".badge").count() == 0  # they prove nothing


def test_enter_sends_and_shift_enter_does_not(visit: Open) -> None:
    one = visit()
    one.page.click("#question")
    one.page.keyboard.type("stock")
    one.page.keyboard.press("Shift+Enter")
    one.page.keyboard.type("in Lyon")
    expect(one.page.locator("#question")).to_have_value("stock\nin Lyon")
    expect(one.page.locator(".turn")).to_have_count(0)
    one.page.keyboard.press("Enter")
    one.page.wait_for_selector(".why")


def test_example_asks_itself(visit: Open) -> None:
    one = visit(locale="es-ES")
    one.page.click(".example >> nth=0")
    one.page.wait_for_selector(".why")
    expect(one.page.locator(".turn h2")).to_contain_text("consumidor vulnerable severo", use_inner_text=True)


def test_answer_is_copied_with_its_sources(visit: Open) -> None:
    one = visit(permissions=["clipboard-read", "clipboard-write"])
    one.ask("stock")
    one.page.click("text=Copy answer")
    one.page.wait_for_selector("text=Copied")
    copied = one.page.evaluate("navigator.clipboard.readText()")
    assert "holds a stock of **4200** [C1]" in copied
    assert copied.startswith("## stock\n\n")
    assert "- \\[C1\\] production.xlsx, sheet Stocks, cell B11 “" in copied and "” (reworded)\n- " in copied
    assert "**Checked against the documents**" in copied
    assert "- \\[C3\\] guide.md (not found)" in copied, "refuted is told, too"
    assert "- “The board reviews all of this twice a year in Geneva.” (without a citation)" in copied
    with one.page.expect_download() as saved:
        one.page.get_by_role("button", name="Save the answer as a file").click()
    assert (saved.value.suggested_filename, saved.value.path().read_text()) == ("stock.md", copied)


def test_keys_lead_to_the_question_and_stop_the_answer(visit: Open) -> None:
    one = visit(Scene(held=True))
    one.page.evaluate("document.activeElement.blur()")
    one.page.keyboard.press("/")
    one.page.keyboard.type("stock")
    one.page.keyboard.press("Enter")
    one.page.wait_for_selector(".turn .badge")
    one.page.keyboard.press("Escape")
    one.page.wait_for_selector(".notice-info")
    expect(one.page.locator("#send")).to_be_visible()


def test_keys_go_from_citation_to_citation_and_are_listed(visit: Open) -> None:
    one = visit()
    one.ask("stock")
    marks = "[...document.querySelectorAll('.badge')].findIndex((one) => one.matches(':focus, [aria-expanded=true]'))"
    one.page.evaluate("document.activeElement.blur()")
    for key, place in (("ArrowDown", 0), ("ArrowDown", 1), ("ArrowUp", 0), ("ArrowUp", 0)):
        one.page.keyboard.press(f"Alt+{key}")
        assert one.page.evaluate(marks) == place
    one.page.keyboard.press("Enter")
    one.page.wait_for_selector("#panel-title:has-text('production.xlsx')")
    one.page.keyboard.press("Alt+ArrowDown")
    one.page.wait_for_selector("#panel-title:has-text('rapport.pdf')")
    assert one.page.evaluate(marks) == 1
    one.page.keyboard.press("Escape")
    one.page.keyboard.press("?")
    expect(one.page.locator(".dialog")).to_contain_text("Next citation", use_inner_text=True)


def test_entries_that_were_found_and_not_cited_are_asked_next(visit: Open) -> None:
    one = visit()
    one.ask("steps")
    asked = one.page.get_by_role("button", name="Who books the truck for a transfer?")
    asked.click()
    one.page.wait_for_selector(".turn:nth-child(2) .why")
    assert not asked.is_visible(), "they are offered below the latest answer"
