"""Every view behind the login, at all widths and in both colour schemes, and by keyboard alone; in a real browser."""

from __future__ import annotations

from typing import Any

import pytest

from tests.acceptance.page_actions import NOTE, add, ask, manage, row
from tests.integration.web.browser import PHONE, Visit, browser, find_axe, serious_findings
from tests.integration.web.papers import MAIL, REPORT, WORKBOOK, upload_of
from tests.integration.web.real import RealService, SignIn, enter, real_service, sign_in
from tests.unit.readers.office_samples import pptx, shape

__all__ = ["browser", "enter", "real_service"]  # fixtures

pytestmark = pytest.mark.slow

DECK = pptx([shape("The crane of Sines lifts 44 tons.")], notes={1: "It was inspected in April."})
DESKTOP, TABLET = (1440, 900), (820, 1100)
VACATION = "How many days of vacation do employees receive?"
RATE = "What was the service rate of the Lille plant?"
SCROLLS = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.mark.parametrize("size", [DESKTOP, TABLET, PHONE], ids=["desktop", "tablet", "phone"])
def test_axe_finds_nothing_serious_on_any_view(enter: SignIn, real_service: RealService, size: Any) -> None:
    axe = find_axe()
    if axe is None:
        pytest.skip("axe-core is not there: npm install axe-core in some folder and name that folder in AXE_PATH")
    one = enter(size=size, bypass_csp=True, locale="fr-FR")  # axe itself is put into the page

    def check(where: str) -> None:
        for scheme in ("dark", "light"):
            one.page.emulate_media(color_scheme=scheme)
            one.page.wait_for_function("!document.getAnimations().length")
            assert serious_findings(one.page, axe) == [], (where, scheme)
        assert one.page.evaluate(SCROLLS) <= 0, where

    one.page.wait_for_selector("#sign-in[open]")
    check("sign-in")
    sign_in(one, real_service.admin.key)
    files = {"leave.md": NOTE, "report.pdf": REPORT, "stocks.xlsx": WORKBOOK, "mail.eml": MAIL, "deck.pptx": DECK}
    add(one, *(upload_of(name, data) for name, data in files.items()))
    one.page.fill("#documents-search", "e")
    one.page.locator("#documents-list .row input").first.check()
    check("documents")
    one.page.locator("#documents-list .row button").last.click()
    check("delete")
    one.page.keyboard.press("Escape")
    for name in ("corpora", "sources", "agents", "users", "keys", "feedback"):
        manage(one, name)
        check(name)
        if name in {"sources", "agents", "keys"}:
            one.page.locator("#manage-list .button.primary").click()
            one.page.wait_for_selector(".dialog")
            check(f"new in {name}")
            one.page.keyboard.press("Escape")
    one.page.click("#manage-lists a[data-list=retrieval]")
    one.page.fill("#retrieval-question", VACATION)
    one.page.press("#retrieval-question", "Enter")
    one.page.wait_for_selector(".passages .chip-good")
    assert "BM25" in one.page.locator(".passages li").first.inner_text()
    one.page.fill("#retrieval-question", "Best restaurant in Kyoto?")
    one.page.press("#retrieval-question", "Enter")
    one.page.wait_for_selector(".passages .chip-warn")
    check("retrieval")
    ask(one, VACATION)
    one.page.locator(".thumbs button").last.click()
    one.page.wait_for_selector(".feedback-form")
    check("feedback form")
    one.page.get_by_role("button", name="Modifier la question").click()
    check("edited question")
    one.page.keyboard.press("Escape")
    one.page.set_input_files("#attach", upload_of("note.txt", NOTE))
    one.page.wait_for_selector(".attached-file")
    check("file with the question")
    one.page.get_by_role("button", name="Retirer le fichier: note.txt").click()
    one.page.wait_for_selector(".attached-file", state="detached")
    one.page.evaluate("document.activeElement.blur()")
    one.page.keyboard.press("?")
    check("keys")
    one.page.keyboard.press("Escape")
    for question, original in (
        (RATE, "canvas"),
        ("What is the stock of Gasket kit?", ".grid"),
        ("When does the supplier deliver the pallets to Porto?", ".part-header"),
        ("How much does the crane of Sines lift?", ".part-aside"),
    ):
        ask(one, question)
        one.page.locator(".turn").last.locator(".badge").first.click()
        one.page.wait_for_selector(f"#panel {original}")
        one.page.wait_for_selector("#panel mark")
        check(original)
        one.page.keyboard.press("Escape")
    one.page.click("#scope")
    one.page.wait_for_selector(".dialog")
    check("scope")
    one.page.keyboard.press("Escape")
    one.page.click("nav a[data-to=conversations]")
    one.page.locator("#conversations-list .row button").first.click()
    one.page.wait_for_selector("#conversations-list .row .chip")
    check("pinned conversation")


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


def test_every_view_is_worked_by_keyboard_alone(enter: SignIn, real_service: RealService) -> None:
    kay = real_service.add_person("kay")
    with real_service.client(kay) as client:
        corpus = client.post("/api/v1/corpora", json={"name": "documents"}).raise_for_status().json()["id"]
        for name, data in (("leave.md", NOTE.encode()), ("report.pdf", REPORT), ("stocks.xlsx", WORKBOOK)):
            files = {"file": (name, data)}
            made = client.post(f"/api/v1/corpora/{corpus}/documents", files=files).raise_for_status().json()
            client.get(f"/api/v1/uploads/{made['uploadId']}/events")  # ends when it is indexed
    one = enter(size=TABLET)
    keys = one.page.keyboard
    one.page.wait_for_selector("#credential:focus")
    keys.type(kay.key)
    keys.press("Enter")
    one.page.wait_for_selector("#account:not([hidden])")

    press(one, "nav a[data-to=documents]")
    one.page.wait_for_selector("#documents-title:focus")
    row(one, "leave.md").wait_for()
    go(one, "#documents-search")
    keys.type("report")
    row(one, "leave.md").wait_for(state="detached")
    press(one, "#documents-sort", "ArrowDown")
    one.page.wait_for_selector("#documents-list .listing[aria-busy=false]")
    press(one, "#documents-list .row input", "Space")
    press(one, "#documents-selection .button")
    one.page.wait_for_selector("#question:focus, #ask-title:focus")
    assert one.page.locator("#scope").inner_text() == "report.pdf"
    go(one, "#question")
    keys.type(RATE)
    keys.press("Enter")
    one.page.wait_for_selector(".turn .why")
    press(one, ".badge", back=True)
    one.page.wait_for_selector("#panel canvas")
    press(one, "#panel button[title='Next page']")
    one.page.wait_for_selector(".pdf-where:has-text('Page 3 of 3')")
    press(one, "#panel [data-view=text]", back=True)
    one.page.wait_for_selector("#panel .passage-text mark")
    keys.press("Escape")
    one.page.wait_for_selector(".badge:focus")
    press(one, "#scope-clear", back=True)
    assert one.page.locator("#scope").inner_text() == "All documents"
    press(one, "#scope")
    one.page.wait_for_selector(".dialog")
    press(one, ".dialog input[type=checkbox]", "Space")
    press(one, ".dialog button[type=submit]")
    one.page.wait_for_selector("#scope:focus:has-text('documents')")
    go(one, "#question")
    keys.type("What is the stock of Gasket kit?")
    keys.press("Enter")
    one.page.wait_for_selector(".turn:nth-child(2) .why")
    press(one, ".turn:nth-child(2) .badge", back=True)
    one.page.wait_for_selector("#panel .passage-text mark")  # the text, as it was chosen before
    press(one, "#panel [data-view=original]")
    one.page.wait_for_selector("#panel .grid")
    go(one, "#panel .table-scroll")
    keys.press("Escape")

    press(one, "nav a[data-to=conversations]", back=True)
    press(one, "#conversations-list button[title='Pin to the top']")
    one.page.wait_for_selector("#conversations-list .chip >> text=pinned")
    one.page.wait_for_selector("#conversations-list button[title='Unpin']:focus")  # the list was made anew

    press(one, "#conversations-list button[title='Rename']")
    one.page.wait_for_selector(".dialog input:focus")
    keys.press("Control+A")
    keys.type("Rates and stocks")
    keys.press("Enter")
    row(one, "Rates and stocks").wait_for()
    one.page.wait_for_selector("#conversations-list button[title='Rename']:focus")
    press(one, "#conversations-list button[title='Delete']")
    one.page.wait_for_selector(".dialog button:focus >> text=Cancel")
    press(one, ".dialog button[type=submit]", back=True)
    row(one, "Rates and stocks").wait_for(state="detached")
    one.page.wait_for_selector("#conversations-title:focus")

    press(one, "nav a[data-to=documents]", back=True)
    one.page.wait_for_selector("#documents-title:focus")
    with one.page.expect_file_chooser() as chooser:
        press(one, "#files")
    chooser.value.set_files([upload_of("new.md", NOTE.replace("25", "27"))])
    one.page.wait_for_selector(".upload[data-state=done] >> text=new.md")

    press(one, "nav a[data-to=manage]", back=True)
    press(one, "#manage-lists a[data-list=sources]")
    one.page.wait_for_selector("#manage-list-title >> text=Sources")
    press(one, "#manage-list .button.primary")
    one.page.wait_for_selector(".dialog input:focus")
    keys.press("Escape")
    one.page.wait_for_selector("#manage-list .button.primary:focus")
    press(one, "#manage-lists a[data-list=retrieval]", back=True)
    go(one, "#retrieval-question")
    keys.type(VACATION)
    keys.press("Enter")
    one.page.wait_for_selector(".passages .chip-good")
    press(one, "#sign-out", back=True)
    one.page.wait_for_selector("#credential:focus")
