"""Takes the pictures of the page in docs/images: `python -m tests.acceptance.screenshots URL`.

The service at URL is empty, has no sign-in and answers with quotes: `RAG_DATA_DIR=$(mktemp -d) rag-service serve`.
"""

from __future__ import annotations

import io
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
from fpdf import FPDF
from PIL import Image
from playwright.sync_api import sync_playwright

from tests.integration.web.browser import find_chromium
from tests.integration.web.papers import WORKBOOK

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

FOLDER = Path(__file__).parents[2] / "docs" / "images"
WIDE, PHONE = (1280, 800), (390, 800)
MOST = 150_000  # bytes of a picture
LEAVE = (
    "# Leave\n\n## Vacation\n\nEmployees receive 25 days of vacation per calendar year.\n\n"
    "Unused vacation days expire on 31 March.\n\n## Parental leave\n\nParental leave lasts 16 weeks, fully paid.\n"
)
REPORT = (
    ("Quarterly report", "Deliveries rose by 4 percent. Two new suppliers joined the recovery plan in May."),
    (
        "Customer service",
        "The service rate of the Lille plant was 97.4 percent in the last quarter. A year earlier it was 96.1 percent. "
        "Complaints fell to 12 per thousand orders, most of them about packaging.",
    ),
    ("Outlook", "The audit of the Lille plant takes two days and begins on 3 March."),
)


def make_report() -> bytes:
    document = FPDF()
    for title, text in REPORT:
        document.add_page()
        document.set_font("helvetica", "B", 20)
        document.cell(0, 16, title, new_x="LMARGIN", new_y="NEXT")
        document.set_font("helvetica", size=13)
        document.multi_cell(0, 8, text)
    return bytes(document.output())


def fill(base: str) -> None:
    """Documents, corpora and an agent to be seen."""
    with httpx.Client(base_url=f"{base}/api/v1", trust_env=False, timeout=30) as client:

        def create(path: str, **body: Any) -> str:
            return str(client.post(path, json=body).raise_for_status().json()["id"])

        plants = create("/corpora", name="plants", kind="global")
        handbook = create("/corpora", name="handbook", kind="global")
        agent = create("/agents", name="HR desk", description="Answers from the handbook")
        client.put(f"/agents/{agent}/corpora/{handbook}").raise_for_status()
        for corpus, name, data in (
            (plants, "report.pdf", make_report()),
            (plants, "stocks.xlsx", WORKBOOK),
            (handbook, "leave.md", LEAVE.encode()),
        ):
            form = {"files": {"file": (name, data)}, "data": {"tags": "2025"}}
            upload = client.post(f"/corpora/{corpus}/documents", **form).raise_for_status().json()
            while client.get(f"/uploads/{upload['uploadId']}").json()["status"] != "indexed":
                time.sleep(0.2)


def ask(page: Page, question: str, *, open_source: bool = False) -> None:
    page.fill("#question", question)
    page.press("#question", "Enter")
    page.wait_for_selector(".turn:last-child .why")
    if open_source:
        page.locator(".turn:last-child .badge").first.click()
        page.wait_for_selector("#panel mark")


def visit(page: Page, address: str, wanted: str) -> None:
    page.goto(f"/#{address}")
    page.wait_for_selector(wanted)


def save(page: Page, name: str) -> None:
    page.wait_for_timeout(400)  # what fades in has come
    picture = Image.open(io.BytesIO(page.screenshot(animations="disabled")))
    path = FOLDER / f"page-{name}.png"
    picture.convert("RGB").quantize(128, dither=Image.Dither.NONE).save(path, optimize=True)
    assert path.stat().st_size <= MOST, f"{path.name} is too large"


def open_page(browser: Browser, base: str, size: tuple[int, int], scheme: str) -> Page:
    width, height = size
    context = browser.new_context(
        base_url=base, viewport={"width": width, "height": height}, locale="en-US", color_scheme=scheme
    )
    page = context.new_page()
    page.goto("/")
    page.wait_for_selector("html.is-started")
    return page


def take(browser: Browser, base: str) -> None:
    page = open_page(browser, base, WIDE, "light")
    page.wait_for_selector("#examples .example")
    save(page, "ask")
    ask(page, "What was the service rate of the Lille plant?", open_source=True)
    save(page, "pdf")
    page.keyboard.press("Escape")
    ask(page, "What is the stock of hex bolts in Lyon?", open_source=True)
    save(page, "sheet")
    page.keyboard.press("Escape")
    page.click("#scope")
    page.wait_for_selector(".dialog")
    save(page, "scope")
    page.keyboard.press("Escape")
    visit(page, "documents", "#corpus-choice:not([hidden])")
    page.select_option("#corpus", label="plants · global")
    page.wait_for_selector("#documents-list .row:has-text('report.pdf')")
    page.locator("#documents-list .row input").first.check()
    save(page, "documents")
    visit(page, "conversations", "#conversations-list .row")
    save(page, "history")
    visit(page, "manage/corpora", "#manage-list .row")
    save(page, "corpora")
    visit(page, "manage/agents", "#manage-list .row")
    save(page, "agents")
    visit(page, "manage/retrieval", "#retrieval-question")
    page.fill("#retrieval-question", "How many days of vacation do employees receive?")
    page.press("#retrieval-question", "Enter")
    page.wait_for_selector("#manage-list .passages li")
    save(page, "search-test")
    phone = open_page(browser, base, PHONE, "dark")
    ask(phone, "How long does parental leave last?")
    save(phone, "phone")


if __name__ == "__main__":
    base = sys.argv[1].rstrip("/")
    fill(base)
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=find_chromium(), args=["--no-sandbox"])
        take(browser, base)
        browser.close()
