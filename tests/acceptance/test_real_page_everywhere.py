"""Every view behind the login, at all widths and in both colour schemes, and by keyboard alone; in a real browser."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.page_actions import NOTE, add, ask, manage, row
from tests.integration.web.browser import PHONE, Visit, browser, expect, find_axe, serious_findings
from tests.integration.web.papers import MAIL, REPORT, WORKBOOK, upload_of
from tests.integration.web.real import Person, RealService, SignIn, enter, real_service, sign_in
from tests.unit.readers.office_samples import pptx, shape

__all__ = ["browser", "enter", "real_service"]  # fixtures

pytestmark = pytest.mark.slow

DECK = pptx([shape("The crane of Sines lifts 44 tons.")], notes={1: "It was inspected in April."})
DESKTOP, TABLET = (1440, 900), (820, 1100)
VACATION = "How many days of vacation do employees receive?"
RATE = "What was the service rate of the Lille plant?"
SCROLLS = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


class Audit:
    """Looks at views with axe-core, in both colour schemes."""

    def __init__(self, one: Visit, axe: Path):
        self.one = one
        self.page = one.page
        self._axe = axe

    def check(self, where: str) -> None:
        for scheme in ("dark", "light"):
            self.page.emulate_media(color_scheme=scheme)
            assert serious_findings(self.page, self._axe) == [], (where, scheme)
        assert self.page.evaluate(SCROLLS) <= 0, where

    def check_dialog(self, where: str) -> None:
        """The dialog that is open, which is then closed."""
        self.page.wait_for_selector(".dialog")
        self.check(where)
        self.page.keyboard.press("Escape")


@pytest.fixture(params=[DESKTOP, TABLET, PHONE], ids=["desktop", "tablet", "phone"])
def stranger(request: pytest.FixtureRequest, enter: SignIn) -> Audit:
    """The page at one size, before anybody has signed in."""
    axe = find_axe()
    if axe is None:
        pytest.skip("axe-core is not there: npm install axe-core in some folder and name that folder in AXE_PATH")
    return Audit(enter(size=request.param, bypass_csp=True, locale="fr-FR"), axe)  # axe itself is put into the page


@pytest.fixture
def audit(stranger: Audit, real_service: RealService, documents: None) -> Audit:
    """The page of an administrator with documents of several formats."""
    sign_in(stranger.one, real_service.admin.key)
    return stranger


@pytest.fixture(scope="module")
def documents(real_service: RealService) -> None:
    files = {
        "leave.md": NOTE.encode(),
        "report.pdf": REPORT,
        "stocks.xlsx": WORKBOOK,
        "mail.eml": MAIL,
        "deck.pptx": DECK,
    }
    with real_service.client(real_service.admin) as client:
        for name, data in files.items():
            client.post("/api/ingest", files={"file": (name, data)}).raise_for_status()


def test_axe_finds_nothing_serious_before_the_sign_in(stranger: Audit) -> None:
    stranger.page.wait_for_selector("#sign-in[open]")
    stranger.check("sign-in")


def test_axe_finds_nothing_serious_among_documents(audit: Audit) -> None:
    add(audit.one, upload_of("leave.md", NOTE))
    with audit.page.expect_response(lambda reply: "q=e" in reply.url):  # asked for a moment after the last key
        audit.page.fill("#documents-search", "e")
    audit.page.locator("#documents-list .row input").first.check()
    audit.check("documents")
    audit.page.locator("#documents-list .row button").last.click()
    audit.check_dialog("delete")


def test_axe_finds_nothing_serious_in_the_management(audit: Audit) -> None:
    for name in ("corpora", "sources", "agents", "users", "keys", "feedback"):
        manage(audit.one, name)
        audit.check(name)
        if name in {"sources", "agents", "keys"}:
            audit.page.locator("#manage-list .button.primary").click()
            audit.check_dialog(f"new in {name}")


def test_axe_finds_nothing_serious_in_the_search_test(audit: Audit) -> None:
    manage(audit.one, "corpora")
    audit.page.click("#manage-lists a[data-list=retrieval]")
    audit.page.fill("#retrieval-question", VACATION)
    audit.page.press("#retrieval-question", "Enter")
    audit.page.wait_for_selector(".passages .chip-good")
    expect(audit.page.locator(".passages li").first).to_contain_text("BM25", use_inner_text=True)
    audit.page.fill("#retrieval-question", "Best restaurant in Kyoto?")
    audit.page.press("#retrieval-question", "Enter")
    audit.page.wait_for_selector(".passages .chip-warn")
    audit.check("search test")


def test_axe_finds_nothing_serious_around_an_answer(audit: Audit) -> None:
    page = audit.page
    ask(audit.one, VACATION)
    page.locator(".thumbs button").last.click()
    page.wait_for_selector(".feedback-form")
    audit.check("feedback form")
    page.get_by_role("button", name="Modifier la question").click()
    page.wait_for_selector(".editing textarea:focus")
    audit.check("edited question")
    page.keyboard.press("Escape")
    page.set_input_files("#attach", upload_of("note.txt", NOTE))
    page.wait_for_selector(".attached-file")
    audit.check("file with the question")
    page.get_by_role("button", name="Retirer le fichier: note.txt").click()
    page.wait_for_selector(".attached-file", state="detached")
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("?")
    audit.check_dialog("keys")
    page.click("#scope")
    audit.check_dialog("scope")


def test_axe_finds_nothing_serious_in_the_sources_of_an_answer(audit: Audit) -> None:
    for question, original in (
        (RATE, "canvas"),
        ("What is the stock of Gasket kit?", ".grid"),
        ("When does the supplier deliver the pallets to Porto?", ".part-header"),
        ("How much does the crane of Sines lift?", ".part-aside"),
    ):
        ask(audit.one, question)
        audit.page.locator(".turn").last.locator(".badge").first.click()
        audit.page.wait_for_selector(f"#panel {original}")
        audit.page.wait_for_selector("#panel mark")
        audit.check(original)
        audit.page.keyboard.press("Escape")


def test_axe_finds_nothing_serious_among_conversations(audit: Audit) -> None:
    ask(audit.one, VACATION)
    audit.page.click("nav a[data-to=conversations]")
    row(audit.one, VACATION).locator("button").first.click()
    row(audit.one, VACATION).locator(".chip").wait_for()
    audit.check("pinned conversation")


def go(one: Visit, selector: str, *, back: bool = False) -> None:
    """Press Tab until an element has the focus, and see that it shows."""
    one.page.wait_for_selector(selector)  # Tab is faster than the service
    for _ in range(80):
        if one.page.evaluate("wanted => document.activeElement.matches(wanted)", selector):
            break
        one.page.keyboard.press("Shift+Tab" if back else "Tab")
    focused = one.page.locator("*:focus")
    assert focused.evaluate("(one, wanted) => one.matches(wanted)", selector), selector
    box, size = focused.bounding_box(), one.page.viewport_size
    assert box and size and 0 <= box["y"] < size["height"], f"{selector} is in sight"


def press(one: Visit, selector: str, key: str = "Enter", *, back: bool = False) -> None:
    go(one, selector, back=back)
    one.page.keyboard.press(key)


@pytest.fixture
def kay(real_service: RealService) -> Person:
    return real_service.add_person("kay")


@pytest.fixture
def keyboard(enter: SignIn, kay: Person) -> Visit:
    """The page, on which a user has signed in by keyboard."""
    one = enter(size=TABLET)
    one.page.wait_for_selector("#credential:focus")
    one.page.keyboard.type(kay.key)
    one.page.keyboard.press("Enter")
    one.page.wait_for_selector("#account:not([hidden])")
    return one


def put_documents(real_service: RealService, person: Person) -> None:
    """Three documents in a corpus of the user's own."""
    with real_service.client(person) as client:
        corpus = client.post("/api/v1/corpora", json={"name": "documents"}).raise_for_status().json()["id"]
        for name, data in (("leave.md", NOTE.encode()), ("report.pdf", REPORT), ("stocks.xlsx", WORKBOOK)):
            files = {"file": (name, data)}
            made = client.post(f"/api/v1/corpora/{corpus}/documents", files=files).raise_for_status().json()
            client.get(f"/api/v1/uploads/{made['uploadId']}/events")  # ends when it is indexed


def test_keyboard_alone_chooses_a_document_asks_about_it_and_opens_its_pages(
    real_service: RealService, kay: Person, keyboard: Visit
) -> None:
    put_documents(real_service, kay)
    page, keys = keyboard.page, keyboard.page.keyboard
    press(keyboard, "nav a[data-to=documents]")
    page.wait_for_selector("#documents-title:focus")
    row(keyboard, "leave.md").wait_for()
    go(keyboard, "#documents-search")
    keys.type("report")
    row(keyboard, "leave.md").wait_for(state="detached")
    press(keyboard, "#documents-sort", "ArrowDown")
    page.wait_for_selector("#documents-list .listing[aria-busy=false]")
    press(keyboard, "#documents-list .row input", "Space")
    press(keyboard, "#documents-selection .button")
    page.wait_for_selector("#question:focus, #ask-title:focus")
    expect(page.locator("#scope")).to_have_text("report.pdf", use_inner_text=True)
    go(keyboard, "#question")
    keys.type(RATE)
    keys.press("Enter")
    page.wait_for_selector(".turn .why")
    press(keyboard, ".badge", back=True)
    page.wait_for_selector("#panel canvas")
    press(keyboard, "#panel button[title='Next page']")
    page.wait_for_selector(".pdf-where:has-text('Page 3 of 3')")
    press(keyboard, "#panel [data-view=text]", back=True)
    page.wait_for_selector("#panel .passage-text mark")
    keys.press("Escape")
    page.wait_for_selector(".badge:focus")
    press(keyboard, "#scope-clear", back=True)
    expect(page.locator("#scope")).to_have_text("All documents", use_inner_text=True)


def test_keyboard_alone_chooses_a_corpus_and_looks_at_the_cells_of_an_answer(
    real_service: RealService, kay: Person, keyboard: Visit
) -> None:
    put_documents(real_service, kay)
    page, keys = keyboard.page, keyboard.page.keyboard
    press(keyboard, "#scope")
    page.wait_for_selector(".dialog")
    press(keyboard, ".dialog input[type=checkbox]", "Space")
    press(keyboard, ".dialog button[type=submit]")
    page.wait_for_selector("#scope:focus:has-text('documents')")
    go(keyboard, "#question")
    keys.type("What is the stock of Gasket kit?")
    keys.press("Enter")
    page.wait_for_selector(".turn .why")
    press(keyboard, ".turn .badge", back=True)
    page.wait_for_selector("#panel .grid")
    go(keyboard, "#panel .table-scroll")
    expect(page.locator("#panel .grid")).to_contain_text("Gasket kit", use_inner_text=True)
    keys.press("Escape")
    page.wait_for_selector(".badge:focus")


def test_keyboard_alone_pins_renames_and_deletes_a_conversation(
    real_service: RealService, kay: Person, keyboard: Visit
) -> None:
    page, keys = keyboard.page, keyboard.page.keyboard
    with real_service.client(kay) as client:
        client.post("/api/v1/query/answer", json={"query": RATE, "keep": True}).raise_for_status()
    press(keyboard, "nav a[data-to=conversations]")
    press(keyboard, "#conversations-list button[title='Pin to the top']")
    page.wait_for_selector("#conversations-list .chip >> text=pinned")
    page.wait_for_selector("#conversations-list button[title='Unpin']:focus")  # the list was made anew
    press(keyboard, "#conversations-list button[title='Rename']")
    page.wait_for_selector(".dialog input:focus")
    keys.press("Control+A")
    keys.type("Rates and stocks")
    keys.press("Enter")
    row(keyboard, "Rates and stocks").wait_for()
    page.wait_for_selector("#conversations-list button[title='Rename']:focus")
    press(keyboard, "#conversations-list button[title='Delete']")
    page.wait_for_selector(".dialog button:focus >> text=Cancel")
    press(keyboard, ".dialog button[type=submit]", back=True)
    page.wait_for_selector("#conversations-title:focus")
    expect(row(keyboard, "Rates and stocks")).to_have_count(0)


def test_keyboard_alone_uploads_a_file(keyboard: Visit) -> None:
    page = keyboard.page
    press(keyboard, "nav a[data-to=documents]")
    page.wait_for_selector("#documents-title:focus")
    with page.expect_file_chooser() as chooser:
        press(keyboard, "#files")
    chooser.value.set_files([upload_of("new.md", NOTE)])
    page.wait_for_selector(".upload[data-state=done]")
    expect(page.locator(".upload")).to_contain_text("new.md", use_inner_text=True)


def test_keyboard_alone_manages_tests_the_search_and_signs_out(
    real_service: RealService, kay: Person, keyboard: Visit
) -> None:
    put_documents(real_service, kay)
    page, keys = keyboard.page, keyboard.page.keyboard
    press(keyboard, "nav a[data-to=manage]")
    press(keyboard, "#manage-lists a[data-list=sources]")
    page.wait_for_selector("#manage-list-title >> text=Sources")
    press(keyboard, "#manage-list .button.primary")
    page.wait_for_selector(".dialog input:focus")
    keys.press("Escape")
    page.wait_for_selector("#manage-list .button.primary:focus")
    press(keyboard, "#manage-lists a[data-list=retrieval]", back=True)
    go(keyboard, "#retrieval-question")
    keys.type(VACATION)
    keys.press("Enter")
    page.wait_for_selector(".passages .chip-good")
    press(keyboard, "#sign-out", back=True)
    page.wait_for_selector("#credential:focus")
    expect(page.locator("#account")).to_be_hidden()
