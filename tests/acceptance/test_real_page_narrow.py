"""At 320 pixels no view is wider than the window, whatever names and documents hold."""

from __future__ import annotations

import re

import pytest

from tests.acceptance.page_actions import add, ask, manage
from tests.integration.web.browser import NARROWEST, browser
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
TURNS = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")  # they turn the direction of what follows
HOSTILE = f"\u2069\u202e<script>alert(1)</script><style>*{{width:999px}}</style>{'w' * 120}"
COLUMNS = [f"column {n}" for n in range(14)]
SHEET = ",".join(COLUMNS) + "\n" + "\n".join(",".join(f"value {n}-{m}" for m in range(14)) for n in range(3)) + "\n"


@pytest.mark.parametrize("locale", ["en-US", "es-ES", "fr-FR", "pt-PT"])
def test_no_view_scrolls_sideways_with_long_names_and_wide_tables(
    enter: SignIn, real_service: RealService, locale: str
) -> None:
    mark = locale[:2]
    one = enter(real_service.admin, size=NARROWEST, locale=locale)
    wide: list[tuple[str, object]] = []

    def check(where: str) -> None:
        if TURNS.search(one.page.evaluate(EVERY_WORD)):
            wide.append((where[:40], "turned"))
        if (by := one.page.evaluate(SCROLLS)) > 0:
            wide.append((where[:40], by))

    with real_service.client(real_service.admin) as client:
        corpus = client.post("/api/v1/corpora", json={"name": f"{mark}{HOSTILE}", "kind": "global"}).json()
        client.post("/api/v1/agents", json={"name": f"{mark}{HOSTILE}", "description": LONG}).raise_for_status()
        client.post("/api/v1/users", json={"name": f"{mark}{HOSTILE}"}).raise_for_status()
        client.post("/api/v1/keys", json={"name": LONG}).raise_for_status()
        source = {"target": f"https://{mark}.invalid/{LONG}", "everySeconds": 86400, "depth": 0}
        client.post(f"/api/v1/corpora/{corpus['id']}/sources", json=source).raise_for_status()
        report = f"# {LONG}\n\nThe {LONG} of Lyon keeps 4200 bolts in {mark}. " + LONG + "\n"
        body = {"text": report, "title": HOSTILE, "fileName": f"{mark}{LONG}.md", "tags": [HOSTILE[:60]]}
        client.post(f"/api/v1/corpora/{corpus['id']}/documents", json=body).raise_for_status()
    add(one, upload_of(f"{mark}\u202e{LONG}.csv", SHEET))
    check("documents")
    one.page.select_option("#corpus", index=one.page.locator("#corpus option").count() - 1)
    one.page.locator("#documents-list .row", has_text=".md").get_by_role("checkbox").check()
    check("documents of a corpus")
    one.page.locator("#documents-list .row button.chip").first.click()
    one.page.wait_for_selector("#documents-tag:not([hidden])")
    check("documents with a tag")
    one.page.click("#documents-tag")
    one.page.locator("#documents-selection button").first.click()
    one.page.wait_for_selector("#scope-clear:not([hidden])")
    check("scope")
    one.page.click("#scope")
    one.page.wait_for_selector(".dialog")
    check("choice of the scope")
    one.page.keyboard.press("Escape")
    one.page.click("#scope-clear")
    one.page.click("nav a[data-to=documents]")
    one.page.wait_for_selector("#documents-list .listing[aria-busy=false]")
    one.page.locator("#documents-list .row button").last.click()
    check("delete")
    one.page.keyboard.press("Escape")
    for name in ("corpora", "sources", "agents", "users", "keys", "feedback"):
        manage(one, name)
        one.page.wait_for_selector("#manage-list .row" if name != "feedback" else "#manage-list .listing")
        check(name)
    one.page.click("#manage-lists a[data-list=retrieval]")
    one.page.fill("#retrieval-question", f"How many bolts does Lyon keep in {mark}?")
    one.page.press("#retrieval-question", "Enter")
    one.page.wait_for_selector(".passages .chip-good")
    check("retrieval")
    one.page.click("nav a[data-to=ask]")
    check("welcome")
    for question in (
        f"How many bolts does Lyon keep in {mark}?",
        "column 3 of value 1-0?",
        LONG,
        f"What is in {mark}{LONG}.csv?",
    ):
        ask(one, question)
        check(question)
        one.page.locator(".turn").last.locator(".why summary").click()
        check(f"why: {question}")
        one.page.locator(".turn").last.locator(".answer-foot .thumbs button").last.click()
        form = one.page.locator(".turn").last.locator(".feedback-form")
        for part in ("textarea", "button[type=submit]"):
            form.locator(part).click(trial=True)  # fails where something else covers it
        check(f"feedback: {question}")
        form.get_by_role("button").last.click()
        if badge := one.page.locator(".turn").last.locator(".badge").all():
            badge[0].click()
            one.page.wait_for_selector("#panel[open]")
            check(f"panel: {question}")
            one.page.keyboard.press("Escape")
    one.page.click("nav a[data-to=conversations]")
    one.page.wait_for_selector("#conversations-list .row")
    check("conversations")
    assert not wide, "\n".join(map(str, wide))
    tables = one.page.locator(".table-scroll").all()
    assert all(table.evaluate("one => getComputedStyle(one).overflowX") == "auto" for table in tables)
