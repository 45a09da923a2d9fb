"""At 320 pixels no view is wider than the window, whatever names and documents hold."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from tests.acceptance.page_actions import TURNS, add, ask, documents, manage
from tests.integration.web.browser import NARROWEST, Visit, browser
from tests.integration.web.papers import upload_of
from tests.integration.web.real import RealService, SignIn, enter, real_service

__all__ = ["browser", "enter", "real_service"]  # fixtures

pytestmark = pytest.mark.slow

SCROLLS = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
LONG = "w" * 180
EVERY_WORD = """() => [
    document.body.innerText,
    ...[...document.querySelectorAll("[title], [aria-label]")].flatMap((one) => [one.title, one.ariaLabel]),
    ...[...document.querySelectorAll("option")].map((one) => one.textContent),
].join()"""
HOSTILE = f"\u2069\u202e<script>alert(1)</script><style>*{{width:999px}}</style>{'w' * 120}"
COLUMNS = [f"column {n}" for n in range(14)]
SHEET = ",".join(COLUMNS) + "\n" + "\n".join(",".join(f"value {n}-{m}" for m in range(14)) for n in range(3)) + "\n"


class Narrow:
    """The page at 320 pixels, and the views that it does not fit into."""

    def __init__(self, one: Visit, mark: str):
        self.one = one
        self.page = one.page
        self.mark = mark  # at the start of each name of this language
        self.faults: list[tuple[str, object]] = []

    def check(self, where: str) -> None:
        if TURNS.search(self.page.evaluate(EVERY_WORD)):
            self.faults.append((where[:40], "turned"))
        if (by := self.page.evaluate(SCROLLS)) > 0:
            self.faults.append((where[:40], by))


@pytest.fixture(scope="module", params=["en-US", "es-ES", "fr-FR", "pt-PT"])
def named(request: pytest.FixtureRequest, real_service: RealService) -> tuple[str, str]:
    """(locale, mark): a service with long and hostile names, which begin with the mark."""
    letters = ["klmnopqrstuvwxyz"[int(digit, 16)] for digit in uuid.uuid4().hex[:4]]  # no number
    mark = "".join([request.param[:2], *letters])
    with real_service.client(real_service.admin) as client:
        corpus = client.post("/api/v1/corpora", json={"name": f"{mark}{HOSTILE}", "kind": "global"}).json()
        client.post("/api/v1/agents", json={"name": f"{mark}{HOSTILE}", "description": LONG}).raise_for_status()
        client.post("/api/v1/users", json={"name": f"{mark}{HOSTILE}"}).raise_for_status()
        client.post("/api/v1/keys", json={"name": LONG}).raise_for_status()
        source = {"target": f"https://{mark}.invalid/{LONG}", "everySeconds": 86400, "depth": 0}
        client.post(f"/api/v1/corpora/{corpus['id']}/sources", json=source).raise_for_status()
        report = f"# {LONG}\n\nThe {LONG} of Lyon keeps 4200 bolts in {mark}. " + LONG + "\n"
        body = {"text": report, "title": HOSTILE, "fileName": f"{mark}{LONG}.md", "tags": [HOSTILE[:60]]}
        made = client.post(f"/api/v1/corpora/{corpus['id']}/documents", json=body).raise_for_status().json()
        client.get(f"/api/v1/uploads/{made['uploadId']}/events")  # ends when it is indexed
        files = {"file": (f"{mark}\u202e{LONG}.csv", SHEET.encode())}
        client.post("/api/ingest", files=files).raise_for_status()
    return request.param, mark


@pytest.fixture
def narrow(enter: SignIn, real_service: RealService, named: tuple[str, str]) -> Iterator[Narrow]:
    locale, mark = named
    looked_at = Narrow(enter(real_service.admin, size=NARROWEST, locale=locale), mark)
    yield looked_at
    assert not looked_at.faults, "\n".join(map(str, looked_at.faults))


def test_documents_and_their_choice_stay_within_a_narrow_window(narrow: Narrow) -> None:
    page = narrow.page
    add(narrow.one, upload_of(f"{narrow.mark}\u202e{LONG}.csv", SHEET))
    narrow.check("documents")
    page.select_option("#corpus", index=page.locator("#corpus option").count() - 1)
    page.locator("#documents-list .row", has_text=".md").get_by_role("checkbox").check()
    narrow.check("documents of a corpus")
    page.locator("#documents-list .row button.chip").first.click()
    page.wait_for_selector("#documents-tag:not([hidden])")
    narrow.check("documents with a tag")
    page.click("#documents-tag")
    page.locator("#documents-selection button").first.click()
    page.wait_for_selector("#scope-clear:not([hidden])")
    narrow.check("scope")
    page.click("#scope")
    page.wait_for_selector(".dialog")
    narrow.check("choice of the scope")
    page.keyboard.press("Escape")
    page.click("#scope-clear")
    documents(narrow.one)
    page.locator("#documents-list .row button").last.click()
    narrow.check("delete")


def test_lists_of_the_management_stay_within_a_narrow_window(narrow: Narrow) -> None:
    for name in ("corpora", "sources", "agents", "users", "keys", "feedback"):
        manage(narrow.one, name)
        narrow.page.wait_for_selector("#manage-list .row" if name != "feedback" else "#manage-list .listing")
        narrow.check(name)
    narrow.page.click("#manage-lists a[data-list=retrieval]")
    narrow.page.fill("#retrieval-question", f"How many bolts does Lyon keep in {narrow.mark}?")
    narrow.page.press("#retrieval-question", "Enter")
    narrow.page.wait_for_selector(".passages .chip-good")
    narrow.check("retrieval")


def test_answers_with_reasons_feedback_and_sources_stay_within_a_narrow_window(narrow: Narrow) -> None:
    page = narrow.page
    narrow.check("welcome")
    for question in (
        f"How many bolts does Lyon keep in {narrow.mark}?",
        "column 3 of value 1-0?",
        LONG,
        f"What is in {narrow.mark}{LONG}.csv?",
    ):
        ask(narrow.one, question)
        narrow.check(question)
        turn = page.locator(".turn").last
        turn.locator(".why summary").click()
        narrow.check(f"why: {question}")
        turn.locator(".answer-foot .thumbs button").last.click()
        form = turn.locator(".feedback-form")
        for part in ("textarea", "button[type=submit]"):
            form.locator(part).click(trial=True)  # fails where something else covers it
        narrow.check(f"feedback: {question}")
        form.get_by_role("button").last.click()
        if badge := turn.locator(".badge").all():
            badge[0].click()
            page.wait_for_selector("#panel[open]")
            narrow.check(f"panel: {question}")
            page.keyboard.press("Escape")
    page.click("nav a[data-to=conversations]")
    page.wait_for_selector("#conversations-list .row")
    narrow.check("conversations")
    tables = page.locator(".table-scroll").all()
    assert all(table.evaluate("one => getComputedStyle(one).overflowX") == "auto" for table in tables)
