"""What a third visitor stumbled over: words, marks and names can be read, and nothing is offered that is not there."""

from __future__ import annotations

import uuid
from functools import partial

import pytest

from tests.acceptance.page_actions import MARKED, NOTE, add, ask, documents, fill, is_in_sight, press, row
from tests.integration.web.browser import PHONE, browser, comes_true, expect
from tests.integration.web.papers import MAIL, REPORT, WORKBOOK, upload_of
from tests.integration.web.real import RealService, SignIn, enter, real_service
from tests.unit.readers.office_samples import pptx, shape

__all__ = ["browser", "enter", "real_service"]  # fixtures

RATE = "What was the service rate of the Lille plant?"
WAITING = "Ships wait at the quay until they are called. "
VACATION = "How many days of vacation do employees receive?"


def test_the_question_box_keeps_its_height_where_it_is_emptied_out_of_sight(
    enter: SignIn, real_service: RealService
) -> None:
    one = enter(real_service.add_person("hidden-box"), size=PHONE)
    box = one.page.locator("#question")
    height = box.evaluate("box => box.clientHeight")
    one.page.click("nav a[data-to=documents]")
    box.evaluate("box => { box.value = ''; box.dispatchEvent(new Event('input')); }")
    one.page.click("nav a[data-to=ask]")
    box.wait_for()
    assert comes_true(one.page, lambda: box.evaluate("box => box.clientHeight") == height)
    box.fill("one\ntwo\nthree")
    assert comes_true(one.page, lambda: box.evaluate("box => box.clientHeight") > height), "it grows with its text"


def test_a_new_question_ends_what_was_said_of_a_conversation_that_is_gone(
    enter: SignIn, real_service: RealService
) -> None:
    one = enter(real_service.add_person("stale-notice"))
    add(one, upload_of("leave.md", NOTE))
    one.page.evaluate(f"location.hash = '#ask/{uuid.uuid4()}'")
    one.page.wait_for_selector(".ask .notice-error")
    ask(one, VACATION)
    expect(one.page.locator(".ask .notice-error")).to_have_count(0)


def test_a_search_in_a_document_marks_the_words_and_says_where_they_are_not(
    enter: SignIn, real_service: RealService
) -> None:
    one = enter(real_service.add_person("searches"))
    add(one, upload_of("report.pdf", REPORT))
    row(one, "report.pdf").get_by_role("button", name="report.pdf", exact=True).click()
    field = one.page.locator(".document-search input")
    field.fill("zebra")
    field.press("Enter")
    one.page.wait_for_selector("#panel >> text=0 passages found")
    expect(one.page.get_by_text("Without these words")).to_be_visible()
    field.fill("lílle")
    field.press("Enter")
    one.page.locator(".found mark", has_text="Lille").first.click()
    one.page.wait_for_selector("#panel .pdf-mark")
    marks = one.page.locator("#panel .pdf-mark")
    widths = marks.evaluate_all("marks => marks.map((mark) => parseFloat(mark.style.width))")
    assert 0 < max(widths) < 10, "the word, not its passage; in percent of the page"
    field.fill("dur")
    field.press("Enter")
    one.page.locator(".found mark", has_text="dur").first.click()
    one.page.wait_for_selector("#panel .pdf-where:has-text('Page 3')")
    one.page.wait_for_function("document.querySelectorAll('#panel .pdf-mark').length === 2")  # each time in a line


def test_a_whole_document_opens_at_the_quote_and_marks_it(enter: SignIn, real_service: RealService) -> None:
    one = enter(real_service.add_person("whole"))
    deck = pptx([shape("Orders are steady.")], [shape("The crane of Sines lifts 44 tons.")], [shape("Thank you.")])
    rules = "\n\n".join(f"# Rule {number}\n\n{WAITING * 20}" for number in range(20))
    tugs = f"{rules}\n\n# Tugs\n\nA tug costs 310 euros an hour.\n\n{rules}"
    add(one, upload_of("deck.pptx", deck), upload_of("tugs.md", tugs))
    quotes = {"How much does the crane of Sines lift?": "44 tons", "What does a tug cost an hour?": "310 euros"}
    for question, quote in quotes.items():
        ask(one, question)
        cited = one.page.locator(".turn").last.locator(".badge, .found-place").first
        opens_document = "found-place" in (cited.get_attribute("class") or "")
        cited.click()
        one.page.wait_for_selector(f"{MARKED} >> text={quote}")
        if not opens_document:
            one.page.get_by_role("button", name="Open the whole document").click()
        one.page.wait_for_selector(".document-search")
        mark = one.page.locator(MARKED, has_text=quote)
        mark.wait_for()
        assert comes_true(one.page, partial(is_in_sight, one.page, f"{MARKED}:has-text('{quote}')")), "in sight"
        assert one.page.locator("#panel .part").count() in (0, 3), "all slides"


def test_of_a_deleted_document_nothing_is_offered_that_is_gone(enter: SignIn, real_service: RealService) -> None:
    one = enter(real_service.add_person("offers"))
    add(one, upload_of("report.pdf", REPORT))
    ask(one, RATE)
    one.page.locator(".turn .badge").first.click()
    one.page.wait_for_selector("#panel .pdf-mark")  # the page is known by now
    one.page.keyboard.press("Escape")
    documents(one)
    press(one, "report.pdf", "Delete")
    one.page.click(".dialog button[type=submit]")
    row(one, "report.pdf").wait_for(state="detached")
    one.page.click("nav a[data-to=ask]")
    one.page.locator(".turn .badge.status-past").first.click()
    one.page.wait_for_selector("#panel >> text=This is what the answer quoted")
    expect(one.page.locator("#panel .source-bar button, #panel canvas")).to_have_count(0)


@pytest.mark.slow
def test_on_a_phone_the_agent_and_the_place_of_the_search_can_be_read(enter: SignIn, real_service: RealService) -> None:
    with real_service.client(real_service.admin) as client:
        client.post("/api/v1/agents", json={"name": "Personal"}).raise_for_status()
    one = enter(real_service.add_person("choices"), size=PHONE, locale="es-ES")
    add(one, upload_of("leave.md", NOTE))
    ask(one, VACATION)
    for shown in ("#share-conversation", "#agent"):
        one.page.wait_for_selector(f"{shown}:visible")
    widths = {name: one.page.locator(name).evaluate("one => one.clientWidth") for name in ("#agent", ".scope-words")}
    assert min(widths.values()) > 90, widths


@pytest.mark.slow
def test_at_four_times_the_size_a_source_names_its_document_in_one_line(
    enter: SignIn, real_service: RealService
) -> None:
    one = enter(real_service.add_person("zooms"), size=(360, 225))
    add(one, upload_of("festival-report-of-the-harbour.md", NOTE))
    ask(one, VACATION)
    one.page.locator(".turn .badge").first.click()
    one.page.wait_for_selector(MARKED)
    box = one.page.locator("#panel-title").bounding_box()
    assert box and box["height"] < 30


@pytest.mark.slow
def test_row_numbers_of_a_sheet_stay_readable_where_its_columns_slide_below_them(
    enter: SignIn, real_service: RealService
) -> None:
    one = enter(real_service.add_person("slides"), size=PHONE)
    add(one, upload_of("stocks.xlsx", WORKBOOK))
    row(one, "stocks.xlsx").get_by_role("button", name="stocks.xlsx", exact=True).click()
    one.page.wait_for_selector("#panel .grid")
    at_the_edge = one.page.locator("#panel .table-scroll").evaluate(
        """area => {
            area.scrollLeft = 60;
            const { left } = area.getBoundingClientRect();
            return [...area.querySelectorAll("tr")].map((line) => {
                const { top, height } = line.getBoundingClientRect();
                return document.elementFromPoint(left + 8, top + height / 2) === line.firstElementChild;
            });
        }"""
    )
    assert len(at_the_edge) == 5 and all(at_the_edge)


def test_questions_over_the_samples_are_offered_only_to_those_who_have_them(
    enter: SignIn, real_service: RealService
) -> None:
    one = enter(real_service.add_person("own-only"), locale="es-ES")
    add(one, upload_of("leave.md", NOTE))  # gives no example in Spanish
    one.page.goto("/#ask/new")
    with one.page.expect_response(lambda reply: "/examples" in reply.url):
        one.page.reload()
    block = one.page.locator("#examples-block")
    block.wait_for(state="hidden")
    add(one, upload_of("empadronamiento.es.md", "# Padrón\n\nPara empadronarse se presenta el DNI.\n"))
    one.page.click("nav a[data-to=ask]")
    block.wait_for(state="visible")


def test_the_header_of_a_mail_is_in_the_words_of_the_page(enter: SignIn, real_service: RealService) -> None:
    one = enter(real_service.add_person("correo"), locale="es-ES")
    add(one, upload_of("mail.eml", MAIL))
    row(one, "mail.eml").get_by_role("button", name="mail.eml", exact=True).click()
    one.page.wait_for_selector("#panel .part dt")
    expect(one.page.locator("#panel .part dt")).to_have_text(["De", "Para", "Asunto"], use_inner_text=True)


@pytest.mark.slow
def test_nothing_beside_a_copied_answer_moves(enter: SignIn, real_service: RealService) -> None:
    one = enter(real_service.add_person("copies"))
    add(one, upload_of("leave.md", NOTE))
    ask(one, VACATION)
    one.page.wait_for_selector("#share-conversation:visible")  # above the answer, and comes after it
    save = one.page.get_by_role("button", name="Save the answer as a file")
    place = "one => [one.offsetLeft, one.offsetTop]"  # in the page, which may be scrolled
    before = save.evaluate(place)
    one.page.get_by_role("button", name="Copy answer").click()
    one.page.wait_for_selector(".answer-actions >> text=Copied")
    assert save.evaluate(place) == before


def test_a_search_in_no_document_is_not_called_a_topic_that_documents_do_not_cover(
    enter: SignIn, real_service: RealService
) -> None:
    one = enter(real_service.add_person("nowhere"))
    for tag in ("first", "second"):
        documents(one)
        one.page.fill("#upload-tags", tag)
        add(one, upload_of(f"{tag}.md", NOTE))
    one.page.click("nav a[data-to=ask]")
    one.page.click("#scope")
    for tag in ("first", "second"):  # which no document has both
        one.page.locator(".dialog").get_by_label(tag).check()
    one.page.click(".dialog button[type=submit]")
    ask(one, VACATION)
    assert one.page.locator(".turn .decision").inner_text().strip() == "No documents to search"


def test_tags_are_given_to_files_changed_later_and_chosen_for_a_question(
    enter: SignIn, real_service: RealService
) -> None:
    one = enter(real_service.add_person("tags"))
    add(one, upload_of("plain.md", "# Bicycles\n\nBicycles are kept in the cellar.\n"))
    one.page.click("nav a[data-to=ask]")
    one.page.click("#scope")
    one.page.wait_for_selector(".dialog")
    expect(one.page.get_by_role("group", name="Tags"), "nothing is shown where there are none").to_have_count(0)
    one.page.keyboard.press("Escape")
    documents(one)
    one.page.get_by_label("Tags of new files").fill("leave, 2025")
    add(one, upload_of("leave.md", NOTE))
    row(one, "leave.md").get_by_role("button", name="2025").wait_for()
    press(one, "leave.md", "Tags")
    fill(one, Tags="leave, staff, staff")
    row(one, "leave.md").get_by_role("button", name="staff").wait_for()
    expect(row(one, "leave.md").locator(".chip")).to_have_text(["leave", "staff"], use_inner_text=True)
    one.page.click("nav a[data-to=ask]")
    one.page.click("#scope")
    tags = one.page.get_by_role("group", name="Tags")
    tags.wait_for()
    expect(tags.locator("label")).to_have_text(["leave · 1", "staff · 1"], use_inner_text=True)
    tags.get_by_label("staff").check()
    one.page.click(".dialog button[type=submit]")
    expect(one.page.locator("#scope")).to_have_text("#staff", use_inner_text=True)
    assert "25" in ask(one, VACATION)
    expect(one.page.get_by_text("Searched in: #staff")).to_be_visible()


@pytest.mark.slow
@pytest.mark.parametrize("locale", ["en-US", "es-ES", "fr-FR", "pt-PT"])
def test_on_a_phone_the_progress_of_uploads_pushes_no_view_out_of_the_window(
    enter: SignIn, real_service: RealService, locale: str
) -> None:
    one = enter(real_service.admin, size=PHONE, locale=locale)
    documents(one)
    one.page.locator("#uploads-progress").evaluate("one => { one.hidden = false; one.textContent = '100 %'; }")
    for link in one.page.locator(".views a").all():
        box = link.bounding_box()
        assert box and 0 <= box["x"] <= PHONE[0] - box["width"]
    inside = "one => one.scrollWidth <= one.clientWidth"
    assert one.page.locator(".views").evaluate(inside)
