"""What a first visitor stumbled over, on the page behind a login: nothing to read, open or save is out of his sight."""

from __future__ import annotations

from typing import Any

import pytest

from tests.acceptance.page_actions import NOTE, add, ask, documents, is_in_sight, press, row
from tests.integration.web.browser import PHONE, WIDE, browser, comes_true, expect
from tests.integration.web.papers import REPORT, upload_of
from tests.integration.web.real import RealService, SignIn, enter, real_service
from tests.unit.readers.samples import xlsx

__all__ = ["browser", "enter", "real_service"]  # fixtures

pytestmark = pytest.mark.slow

LONG_NOTE = "\n\n".join(
    f"# Harbour rule {number}\n\nRule {number} of the harbour tariff: a ship that stays {number} days in the harbour "
    f"pays the harbour tariff of {number * 10} euros for each day, and the harbour master signs the tariff sheet."
    for number in range(1, 7)
)
SPARES = xlsx(
    [
        ("Product", "Description of the product", "Place of storage", "Supplier of the product", "Remarks", "Stock"),
        ("Hex bolt M8", "Galvanised steel", "Shelf 16", "Northern Bolts", "Second delivery in autumn", 120),
        ("Ball valve DN25", "Stainless steel", "Shelf 17", "Southern Valves", "Lever comes separately", 36),
        ("Gasket kit", "Rubber and cork", "Shelf 18", "Eastern Rubber", "Keep out of the sun", 75),
    ],
    sheet="Stocks",
)


def test_on_a_phone_an_answer_begins_in_sight(enter: SignIn, real_service: RealService) -> None:
    one = enter(real_service.add_person("first-answer"), size=PHONE)
    add(one, upload_of("harbour.md", LONG_NOTE))
    ask(one, "What does a ship pay for the harbour tariff, and who signs the tariff sheet?")
    is_long = "document.documentElement.scrollHeight > innerHeight"
    assert comes_true(one.page, lambda: one.page.evaluate(is_long)), "the answer fits the window"
    one.page.wait_for_timeout(600)  # what comes below the answer is made last
    head = one.page.locator(".turn h2").last.bounding_box()
    assert head and head["y"] > 0


def test_a_conversation_can_be_exported_after_a_reload(enter: SignIn, real_service: RealService) -> None:
    one = enter(real_service.add_person("first-export"), size=WIDE)
    add(one, upload_of("leave.md", NOTE))
    ask(one, "How many days of vacation do employees receive?")
    one.page.reload()
    one.page.wait_for_selector(".turn .why")
    one.page.click("#export-conversation")
    one.page.wait_for_selector(".dialog button[type=submit]")
    with one.page.expect_download() as saving:
        one.page.click(".dialog button[type=submit]")
    assert "25 days" in saving.value.path().read_text(encoding="utf-8")


def test_a_citation_of_a_deleted_document_says_that_it_is_deleted(enter: SignIn, real_service: RealService) -> None:
    one = enter(real_service.add_person("first-deleted"), size=WIDE)
    add(one, upload_of("report.pdf", REPORT))
    ask(one, "What was the service rate of the Lille plant?")
    documents(one)
    press(one, "report.pdf", "Delete")
    one.page.click(".dialog button[type=submit]")
    row(one, "report.pdf").wait_for(state="detached")
    one.page.click("nav a[data-to=ask]")
    badge = one.page.locator(".turn .badge.status-past", has_text="deleted since").first
    badge.wait_for()
    expect(one.page.locator(".turn .decision .is-verified"), "no green tick over a source that is gone").to_have_count(
        0
    )
    badge.click()
    one.page.wait_for_selector("#panel >> text=The document has been deleted")
    expect(one.page.locator("#panel .passage-text")).to_contain_text("97.4", use_inner_text=True)


@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["wide", "phone"])
def test_the_cells_of_a_sum_are_in_sight(enter: SignIn, real_service: RealService, size: tuple[int, int]) -> None:
    one = enter(real_service.add_person(f"first-sum-{size[0]}"), size=size)
    add(one, upload_of("spares.xlsx", SPARES))
    assert "231" in ask(one, "What is the total stock?")
    one.page.locator(".turn .badge").first.click()
    one.page.wait_for_selector("#panel td.is-cited")
    assert comes_true(one.page, lambda: is_in_sight(one.page, "#panel td.is-cited mark"))


def test_a_search_in_a_document_shows_the_words_it_found(enter: SignIn, real_service: RealService) -> None:
    one = enter(real_service.add_person("first-search"), size=WIDE)
    add(one, upload_of("spares.xlsx", SPARES))
    documents(one)
    row(one, "spares.xlsx").get_by_text("spares.xlsx").first.click()
    one.page.fill("#panel input[type=search]", "Shelf 17")
    one.page.press("#panel input[type=search]", "Enter")
    found = one.page.locator("#panel .found button").first
    expect(found.locator("mark")).to_have_text("Shelf 17", use_inner_text=True)
    found.click()
    one.page.wait_for_selector("#panel .source-view mark:has-text('Shelf 17')")


def test_on_a_phone_a_question_that_waits_for_its_file_says_so(enter: SignIn, real_service: RealService) -> None:
    one = enter(real_service.add_person("first-wait"), size=PHONE)
    asked: list[Any] = []  # how the file fares
    one.page.route("**/api/v1/uploads/**", lambda route: asked.append(route))
    one.page.set_input_files("#attach", [upload_of("harbour.md", LONG_NOTE)])
    one.page.wait_for_selector("#attached .upload")
    one.page.fill("#question", "What does a ship pay?")
    one.page.press("#question", "Enter")
    told = one.page.locator("#question-hint .keys", has_text="as soon as it is ready")
    told.wait_for(state="visible")
    one.page.wait_for_timeout(5000)
    expect(told, "for as long as it waits").to_be_visible()
    one.page.unroute("**/api/v1/uploads/**")
    one.page.wait_for_selector(".turn .why")
    expect(one.page.locator(".turn").last).to_contain_text("harbour.md", use_inner_text=True)
    expect(told).to_have_count(0)
