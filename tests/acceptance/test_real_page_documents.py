"""Documents and answers on the page, behind a login, in a real browser: from the upload to the proof."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import psycopg
import pytest
from fpdf import FPDF
from PIL import Image

from tests.acceptance.page_actions import MARKED, NOTE, add, ask, best_of_several, documents, is_in_sight, press, row
from tests.integration.web.browser import (
    PHONE,
    WAIT_SECONDS,
    WIDE,
    browser,
    comes_true,
    expect,
    find_axe,
    serious_findings,
)
from tests.integration.web.papers import HOSTILE, MAIL, REPORT, WORKBOOK, upload_of
from tests.integration.web.real import RealService, SignIn, enter, real_service
from tests.loop_watch import slowness
from tests.serving import wait_until
from tests.unit.readers.office_samples import pptx, shape
from tests.unit.readers.samples import pdf
from tests.unit.readers.scans import page_image, saved

__all__ = ["browser", "enter", "real_service"]  # fixtures


LISTED_WITHIN = 2.0  # seconds for a list of 10,000 documents, on a machine that is busy and not slow


@pytest.mark.parametrize("size", [WIDE, pytest.param(PHONE, marks=pytest.mark.slow)], ids=["wide", "phone"])
def test_from_upload_to_proof_to_deletion(enter: SignIn, real_service: RealService, size: Any) -> None:
    one = enter(real_service.add_person(f"carla-{size[0]}"), size=size)
    documents(one)
    one.page.set_input_files("#files", [upload_of("report.pdf", REPORT), upload_of("stocks.xlsx", WORKBOOK)])
    for name in ("report.pdf", "stocks.xlsx"):
        one.page.wait_for_selector(f".upload[data-state=done] >> text={name}")
    one.page.locator("#documents-list .row").nth(1).wait_for()
    row(one, "stocks.xlsx").filter(has_text="passage").wait_for()
    questions = {
        "What was the service rate of the Lille plant?": ("97.4", "report.pdf · p. 2"),
        "¿Cuánto dura la auditoria de Sevilla?": ("cinco dias", "report.pdf · p. 3"),
        "Quel est le stock de Gasket kit ?": ("75", "stocks.xlsx · Stocks"),
    }
    for question, (words, place) in questions.items():
        assert words in ask(one, question)
        badges = one.page.locator(".turn").last.locator(".badge, .found-place").filter(visible=True)
        assert place in (badges.first.text_content() or "").replace("page ", "p. ")
        for number in range(badges.count()):
            badges.nth(number).click()
            one.page.wait_for_selector(MARKED)
            assert comes_true(one.page, lambda: is_in_sight(one.page, MARKED))
            if number == 0:
                shown = " ".join(one.page.locator(MARKED).all_inner_texts())
                assert words in shown
                view = "canvas" if ".pdf" in place else ".grid .is-cited"
                expect(one.page.locator(f"#panel {view}"), "the original, not its text").to_have_count(1)
            one.page.keyboard.press("Escape")
            one.page.wait_for_selector("#panel", state="hidden")

    one.page.locator(".turn").nth(0).locator(".badge, .found-place").first.click()
    one.page.wait_for_selector(MARKED)
    one.page.click("button[title='Next page']")
    one.page.wait_for_selector(".pdf-where:has-text('Page 3 of 3')")
    one.page.click("#panel [data-view=text]")
    one.page.wait_for_selector("#panel .passage-text mark:has-text('97.4')")
    with one.page.expect_download() as saved:
        one.page.click("text=Download original")
    assert saved.value.path().read_bytes() == REPORT
    one.page.keyboard.press("Escape")

    documents(one)
    press(one, "stocks.xlsx", "Delete")
    one.page.click(".dialog button[type=submit]")
    one.page.wait_for_selector("#status >> text=stocks.xlsx has been deleted", state="attached")
    expect(one.page.locator("#documents-list .row")).to_have_count(1)
    refusal = ask(one, "Quel est le stock de Gasket kit ?")
    assert "75" not in refusal
    expect(one.page.locator(".turn").last.locator(".decision-out_of_scope")).to_have_count(1)
    expect(one.page.locator(".turn").last.locator(".badge")).to_have_count(0)


@pytest.mark.parametrize("size", [WIDE, pytest.param(PHONE, marks=pytest.mark.slow)], ids=["wide", "phone"])
def test_a_document_opens_from_its_name_is_searched_and_leads_back(
    enter: SignIn, real_service: RealService, size: Any
) -> None:
    one = enter(real_service.add_person(f"dora-{size[0]}"), size=size, bypass_csp=True)  # for axe
    add(one, upload_of("report.pdf", REPORT), upload_of("stocks.xlsx", WORKBOOK))
    name = row(one, "report.pdf").get_by_role("button", name="report.pdf", exact=True)
    name.click()
    one.page.wait_for_selector("#panel .pdf-where:has-text('Page 1 of 3')")
    expect(one.page.get_by_text("could not be marked"), "nothing is quoted").to_be_hidden()
    one.page.fill(".document-search input", "service rate of the Lille plant")
    one.page.press(".document-search input", "Enter")
    one.page.locator(".found button").first.click()
    one.page.wait_for_selector(MARKED)  # the passage, on the page where it begins
    close = one.page.locator("#panel .panel-head .icon-button").bounding_box()
    assert close and 0 <= close["y"] < size[1], "the way back stays in sight"
    if axe := find_axe():
        assert serious_findings(one.page, axe) == []
    one.page.set_input_files("#files", [upload_of("note.txt", b"The gate opens at six.")])
    row(one, "note.txt").wait_for(state="attached")  # the list has been fetched anew
    one.page.keyboard.press("Escape")
    expect(name).to_be_focused()

    ask(one, "What is the total stock?")
    one.page.locator(".turn").last.locator(".badge").first.click()
    one.page.wait_for_selector("#panel .grid tfoot")
    assert one.page.locator("#panel .grid mark").all_inner_texts() == ["120", "36", "75"], "what was added, and no more"
    expect(one.page.locator("#panel .grid tfoot strong")).to_have_text("231", use_inner_text=True)


def picture(text: str, format: str) -> bytes:
    return saved(page_image(text, y=100, share=1), format)


@pytest.mark.slow
def test_quotes_of_scans_are_marked_in_the_picture(enter: SignIn, real_service: RealService) -> None:
    one = enter(real_service.add_person("berta"))
    documents(one)
    gauge, pump = "The gauge of Arlon shows 47 bars", "The pump of Namur weighs 310 kilograms"
    files = [upload_of("gauge.png", picture(gauge, "PNG")), upload_of("pump.pdf", picture(pump, "PDF"))]
    one.page.set_input_files("#files", files)
    for name in ("gauge.png", "pump.pdf"):
        row(one, name).filter(has_text="passage").wait_for(timeout=60_000)
    questions = {"What does the gauge of Arlon show?": (gauge, 61), "What does the pump of Namur weigh?": (pump, 75)}
    for question, (quote, width) in questions.items():  # in millimetres
        ask(one, question)
        one.page.locator(".turn").last.locator(".badge").first.click()
        one.page.wait_for_selector("#panel canvas")
        expect(one.page.locator("#panel .pdf-mark")).to_have_text(quote, use_inner_text=True)
        page, mark = (one.page.locator(f"#panel {name}").bounding_box() for name in ("canvas", ".pdf-mark"))
        assert page and mark
        left, top = (mark["x"] - page["x"]) / page["width"], (mark["y"] - page["y"]) / page["height"]
        size = mark["width"] / page["width"], mark["height"] / page["height"]
        assert (left, top, *size) == pytest.approx((10 / 210, 100 / 297, width / 210, 6 / 297), abs=0.02)
        one.page.keyboard.press("Escape")


def test_quotes_of_slides_and_mails_are_marked_in_their_text(enter: SignIn, real_service: RealService) -> None:
    one = enter(real_service.add_person("bruno"))
    deck = pptx([shape("Orders are steady.")], [shape("The crane of Sines lifts 44 tons.")])
    add(one, upload_of("deck.pptx", deck), upload_of("mail.eml", MAIL))
    questions = {
        "How much does the crane of Sines lift?": ("deck.pptx · slide 2", "The crane of Sines lifts 44 tons", deck),
        "When does the supplier deliver the pallets to Porto?": ("mail.eml", "pallets to Porto on 14 March", MAIL),
    }
    for question, (place, quote, original) in questions.items():
        ask(one, question)
        badge = one.page.locator(".turn").last.locator(".badge").first
        assert place in (badge.text_content() or "")
        badge.click()
        one.page.wait_for_selector("#panel .passage-text mark")
        assert quote in " ".join(one.page.locator(MARKED).all_inner_texts())
        with one.page.expect_download() as saved:
            one.page.click("text=Download original")
        assert saved.value.path().read_bytes() == original
        one.page.keyboard.press("Escape")


def test_a_document_opens_in_the_parts_that_its_readers_know(enter: SignIn, real_service: RealService) -> None:
    one = enter(real_service.add_person("cleo"))
    steady, crane = [shape("Orders are steady.")], [shape("Cranes", kind="title"), shape("The crane lifts 44 tons.")]
    deck = pptx(steady, crane, notes={2: "It was inspected in April."})
    thread = MAIL + b"\r\nOn 3 May 2026 at 09:12, Ana <ana@example.org> wrote:\r\n> When do the pallets come?\r\n"
    add(one, upload_of("deck.pptx", deck), upload_of("thread.eml", thread), upload_of("stocks.xlsx", WORKBOOK))
    parts = one.page.locator("#panel .part")

    def opened(name: str) -> list[str]:
        row(one, name).get_by_role("button", name=name, exact=True).click()
        one.page.wait_for_selector(f"#panel:has(h2:text-is('{name}')) .part")
        return [text.strip() for text in parts.all_inner_texts()]

    first, second = opened("deck.pptx")
    assert "Orders" in first and "Cranes" in second and "44 tons" in second
    expect(parts.nth(1).locator("aside"), "notes stand apart").to_contain_text("inspected", use_inner_text=True)
    opened("thread.eml")
    expect(parts.first.locator("dt")).to_have_text(["From", "To", "Subject"], use_inner_text=True)
    expect(parts.first.locator("dd").last).to_have_text("Pallets for Porto", use_inner_text=True)
    expect(parts.nth(1).get_by_text("Ana, 3 May 2026")).to_be_visible()
    expect(parts.nth(1).get_by_text("When do the pallets come?"), "what was said before is folded").to_be_hidden()
    opened("stocks.xlsx")
    expect(parts.first.locator("h3")).to_contain_text("Stocks", use_inner_text=True)
    expect(parts.first.locator(".grid td", has_text="Gasket kit")).to_have_count(1)

    ask(one, "How much does the crane lift?")
    one.page.locator(".turn .badge").last.click()
    one.page.wait_for_selector("#panel .part mark")
    assert parts.count() == 1 and "44 tons" in parts.inner_text(), "the cited slide"


@pytest.mark.slow
def test_large_pdf_comes_part_by_part_and_a_page_that_does_not_come_is_told(
    enter: SignIn, real_service: RealService
) -> None:
    pages = FPDF()
    for words in ("The code of the red valve is K41.", "The code of the blue valve is K52."):
        pages.add_page()
        pages.set_font("helvetica", size=13)
        pages.cell(0, 8, words, new_x="LMARGIN", new_y="NEXT")
        pages.image(Image.frombytes("RGB", (330, 330), os.urandom(330 * 330 * 3)), w=50)
    one = enter(real_service.add_person("flo"))
    parts: list[int] = []
    one.page.on("response", lambda reply: reply.url.endswith("/original") and parts.append(reply.status))
    add(one, upload_of("valves.pdf", bytes(pages.output())))
    assert "K41" in ask(one, "What is the code of the red valve?")
    one.page.locator(".badge").first.click()
    one.page.wait_for_selector("#panel canvas")
    assert comes_true(one.page, lambda: "red valve" in " ".join(one.page.locator(MARKED).all_inner_texts()))
    assert comes_true(one.page, lambda: len(parts) > 1) and set(parts) == {206}
    one.page.route("**/original", lambda route: route.abort())
    one.page.click("button[title='Next page']")
    one.page.wait_for_selector("#panel >> text=This page could not be shown.")


def test_hostile_document_stays_text(enter: SignIn, real_service: RealService) -> None:
    one = enter(real_service.add_person("dora"))
    name = "<img src=x onerror=alert(1)>.md"
    add(one, upload_of(name, HOSTILE))
    assert one.page.locator("#documents-list .row-title").inner_text().startswith("<img")
    assert "640" in ask(one, "How many barrels of oil does the warehouse in Metz hold?")
    one.page.locator(".badge, .found-place").first.click()
    one.page.wait_for_selector(MARKED)
    expect(one.page.locator("#panel")).to_contain_text("640", use_inner_text=True)
    inert = ":is(.turns, #panel, #documents-list) :is(a[href^=http], a[href^=javascript], img, script, iframe)"
    expect(one.page.locator(inert)).to_have_count(0)
    assert one.page.evaluate("window.hacked") is None


def test_original_never_runs_as_ours(real_service: RealService) -> None:
    with real_service.client(real_service.add_person("html")) as client:
        corpus = client.post("/api/v1/corpora", json={"name": "pages"}).json()["id"]
        page = b"<html><body><h1>Note</h1><p>Ten barrels.</p><script>alert(1)</script></body></html>"
        accepted = client.post(f"/api/v1/corpora/{corpus}/documents", files={"file": ("note.html", page)}).json()
        wait_until(
            lambda: client.get(f"/api/v1/uploads/{accepted['uploadId']}").json()["status"] == "indexed", WAIT_SECONDS
        )
        url = f"/api/v1/documents/{accepted['documentId']}/original"
        sent = client.get(url)
    assert sent.content == page
    assert sent.headers["content-disposition"].startswith("attachment")
    assert sent.headers["x-content-type-options"] == "nosniff"
    assert "sandbox" in sent.headers["content-security-policy"]
    with real_service.client(real_service.add_person("other")) as other:
        assert other.get(url).status_code == 404


LISTEN = """() => {
    window.told = [];
    const status = document.getElementById("status");
    new MutationObserver(() => told.push(status.textContent)).observe(status, { childList: true });
}"""


def test_refused_and_broken_files_say_why_and_can_be_tried_again(enter: SignIn, real_service: RealService) -> None:
    one = enter(real_service.add_person("emil"))
    documents(one)
    large = upload_of("large.csv", b"a;b\n" * 300_000)
    one.page.evaluate(LISTEN)  # the list, fetched anew, is told after it
    one.page.set_input_files(
        "#files", [upload_of("broken.pdf", b"%PDF-1.4 rubbish"), large, upload_of("fine.md", NOTE)]
    )
    one.page.wait_for_selector("#uploads-count:text-is('1 of 3, 2 failed')")
    one.page.wait_for_function("told.some((words) => words.startsWith('1 file done, 2 failed'))")
    failed = one.page.locator("#uploads .upload[data-state=failed]")
    expect(failed.filter(has_text="broken.pdf")).to_contain_text("the end of the PDF is missing", use_inner_text=True)
    expect(failed.filter(has_text="large.csv")).to_contain_text("the limit is 1 MB", use_inner_text=True)
    one.page.wait_for_selector("#documents-list .row .chip-bad")
    expect(row(one, "broken.pdf")).to_contain_text("the end of the PDF is missing", use_inner_text=True)
    expect(one.page.get_by_role("button", name="Try again"), "they would be refused again").to_have_count(0)
    one.page.route("**/documents", lambda route: route.abort())
    one.page.set_input_files("#files", [upload_of("later.md", f"{NOTE} Later.")])
    one.page.wait_for_selector(".upload[data-state=failed] >> text=cannot be reached")
    one.page.unroute("**/documents")
    one.page.locator("#uploads .upload").first.get_by_role("button", name="Try again").click()
    one.page.wait_for_selector("#uploads-done .upload >> text=later.md")
    french = enter(real_service.add_person("emile"), locale="fr-FR")
    documents(french)
    secret = pdf("Secret", password="owner", user_password="user")
    files = {"broken.pdf": b"%PDF-1.4 rubbish", "secret.pdf": secret, "empty.txt": b" \n"}
    french.page.set_input_files("#files", [upload_of(name, data) for name, data in files.items()])
    reasons = ("Le fichier ne peut pas être lu.", "Le fichier est protégé.", "Le fichier ne contient pas de texte.")
    for name, reason in zip(files, reasons, strict=True):
        fault = row(french, name).locator(".row-fault")
        fault.wait_for()
        expect(fault).to_contain_text(reason, use_inner_text=True)
        expect(fault.locator("[lang=en]")).to_have_count(1)


def test_many_uploads_are_told_in_sum_on_every_view_and_leave_the_list_in_sight(
    enter: SignIn, real_service: RealService
) -> None:
    one = enter(real_service.add_person("max"))
    documents(one)
    held: list[Any] = []
    one.page.route(
        "**/documents",
        lambda route: (
            held.append(route)
            if "late" in (route.request.post_data_buffer or b"").decode(errors="ignore")
            else route.continue_()
        ),
    )
    files = [upload_of(f"note {n}.md", f"{NOTE} Note {n}.") for n in range(7)]
    one.page.set_input_files(
        "#files", [upload_of("broken.pdf", b"%PDF-1.4 rubbish"), *files, upload_of("late.md", NOTE)]
    )
    one.page.wait_for_selector("#uploads-count:text-is('7 of 9, 1 failed')")
    expect(one.page.locator("#uploads .upload").first, "what failed is on top").to_contain_text(
        "broken.pdf", use_inner_text=True
    )
    assert not one.page.locator("#uploads-done .upload").first.is_visible(), "what is done is collapsed"
    list_top = one.page.locator("#documents-list .row").first.bounding_box()
    assert list_top and list_top["y"] < 1.5 * WIDE[1]
    one.page.click("nav a[data-to=conversations]")
    link = one.page.locator("nav a[data-to=documents]")
    assert comes_true(one.page, lambda: link.inner_text().split() == ["Documents", "89%"]), link.inner_text()
    held[0].continue_()
    one.page.wait_for_selector("#uploads-progress", state="hidden")
    one.page.click("nav a[data-to=documents]")
    expect(one.page.locator("#uploads-count")).to_have_text("8 of 9, 1 failed", use_inner_text=True)


def test_document_is_replaced_downloaded_and_given_a_lifetime(enter: SignIn, real_service: RealService) -> None:
    one = enter(real_service.add_person("fay"))
    add(one, upload_of("leave.md", NOTE))
    with one.page.expect_download() as saved:
        press(one, "leave.md", "Download")
    assert saved.value.suggested_filename == "leave.md"
    assert saved.value.path().read_text() == NOTE
    press(one, "leave.md", "Retention")
    one.page.select_option(".dialog select", label="7 days")
    one.page.click(".dialog button[type=submit]")
    one.page.wait_for_selector("#documents-list >> text=until")
    with one.page.expect_file_chooser() as chooser:
        press(one, "leave.md", "Replace with a new version")
    with one.page.expect_response(lambda reply: "/documents?" in reply.url):  # the list is fetched anew
        chooser.value.set_files([upload_of("another name.md", NOTE.replace("25", "31"))])
        one.page.locator("#uploads-done .upload", has_text="leave.md").nth(1).wait_for()
    expect(one.page.locator("#documents-list .row")).to_have_count(1)
    expect(row(one, "leave.md"), "its lifetime goes on").to_contain_text("until", use_inner_text=True)
    assert "31 days" in ask(one, "How many days of vacation do employees receive?")


def test_folder_is_uploaded_searched_asked_about_moved_and_deleted(
    enter: SignIn, real_service: RealService, tmp_path: Path
) -> None:
    for place, days in (("lyon", 25), ("lille", 30)):
        (tmp_path / "sites" / place).mkdir(parents=True)
        (tmp_path / "sites" / place / "leave.md").write_text(NOTE.replace("25", str(days)))
    (tmp_path / "sites" / "tool.exe").write_bytes(b"MZ")
    one = enter(real_service.add_person("fay with a folder"))
    documents(one)
    one.page.set_input_files("#folder", tmp_path / "sites")
    one.page.wait_for_selector(".upload[data-state=done] >> nth=1")
    one.page.wait_for_selector("#documents-list .row:has-text('1 passage') >> nth=1")
    expect(one.page.locator(".upload"), "what cannot be read is left out").to_have_count(2)
    one.page.fill("#documents-search", "lille/")
    one.page.wait_for_selector("#documents-list .row >> nth=1", state="detached")
    row(one, "sites/lille/leave.md").get_by_role("checkbox").check()
    one.page.click("text=Ask about these")
    assert "30 days" in ask(one, "How many days of vacation do employees receive?")
    assert "25 days" not in one.page.locator(".turn").inner_text()
    expect(one.page.locator(".turn")).to_contain_text("Searched in: leave.md", use_inner_text=True)
    one.page.click("#new-conversation")
    expect(one.page.locator("#scope"), "the choice was for that conversation").to_have_text(
        "All documents", use_inner_text=True
    )
    documents(one)
    one.page.fill("#documents-search", "")
    one.page.wait_for_selector("#documents-list .row >> nth=1")
    row(one, "sites/lyon/leave.md").get_by_role("checkbox").check()
    expect(one.page.locator("#documents-selection >> text=Move"), "there is nowhere to move to").to_have_count(0)
    archive = one.client.post("/api/v1/corpora", json={"name": "archive"}).raise_for_status().json()["id"]
    kept = {"text": "Another note.", "path": "sites/lille/leave.md"}
    one.client.post(f"/api/v1/corpora/{archive}/documents", json=kept).raise_for_status()
    documents(one)
    one.page.reload()
    one.page.wait_for_selector("#documents-list .row >> nth=1")
    row(one, "sites/lyon/leave.md").get_by_role("checkbox").check()
    one.page.click("text=Select all shown")
    one.page.click("#documents-selection >> text=Move")
    one.page.click(".dialog button[type=submit]")
    one.page.wait_for_selector("text=1 document has been moved", state="attached")
    refused = expect(one.page.locator("#documents-messages"))
    refused.to_contain_text("Not changed: leave.md", use_inner_text=True)
    refused.to_contain_text("already has a document named 'sites/lille/leave.md'", use_inner_text=True)
    expect(one.page.locator("#documents-list .row")).to_have_count(1)
    one.page.select_option("#corpus", label="archive · personal")
    one.page.wait_for_selector("#documents-list .row >> nth=1")
    one.page.locator("#documents-list").get_by_role("checkbox").nth(2).check()
    one.page.click("text=Select all shown")
    one.page.click("#documents-selection >> text=Delete")
    one.page.click(".dialog button[type=submit]")
    one.page.wait_for_selector("text=2 documents have been deleted", state="attached")
    expect(one.page.locator("#documents-list .row")).to_have_count(0)


@pytest.mark.slow
def test_two_tabs_change_the_same_document(enter: SignIn, real_service: RealService) -> None:
    gina = real_service.add_person("gina")
    one = enter(gina)
    names = ("twice.md", "download.md", "retention.md", "several.md", "stays.md")
    add(one, *(upload_of(name, f"{NOTE}\nThis is {name}.\n") for name in names))
    two = enter(gina)
    documents(two)
    for tab in (one, two):
        row(tab, "twice.md").filter(has_text="1 passage").wait_for()
        press(tab, "twice.md", "Delete")
    for tab in (one, two):
        tab.page.click(".dialog button[type=submit]")
        row(tab, "twice.md").wait_for(state="detached")
        expect(tab.page.locator(".dialog, #documents-messages .notice")).to_have_count(0)
    listed = one.client.get(f"/api/v1/corpora/{one.client.get('/api/v1/corpora').json()['items'][0]['id']}/documents")
    ids = {document["fileName"]: document["id"] for document in listed.json()["items"]}
    for name, gone in (("download.md", "Download"), ("retention.md", "Retention")):
        one.client.delete(f"/api/v1/documents/{ids[name]}").raise_for_status()
        press(two, name, gone)
        if gone == "Retention":
            two.page.select_option(".dialog select", label="7 days")
            two.page.click(".dialog button[type=submit]")
            two.page.wait_for_selector(".dialog .notice-error >> text=cannot be found")
            two.page.keyboard.press("Escape")
        else:
            two.page.wait_for_selector("#documents-messages .notice-error >> text=cannot be found")
        row(two, name).wait_for(state="detached")
    row(two, "several.md").get_by_role("checkbox").check()
    row(two, "stays.md").get_by_role("checkbox").check()
    one.client.delete(f"/api/v1/documents/{ids['several.md']}").raise_for_status()
    two.page.click("#documents-selection >> text=Delete")
    two.page.click(".dialog button[type=submit]")
    two.page.wait_for_selector("text=2 documents have been deleted", state="attached")
    expect(two.page.locator("#documents-list .row")).to_have_count(0)


GIVE = """([how, name, text]) => {
    const data = new DataTransfer();
    data.items.add(new File([text], name));
    const options = { bubbles: true, cancelable: true };
    const target = document.querySelector(how === "paste" ? "#question" : "body");
    if (how === "paste") target.dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, ...options }));
    for (const type of how === "drop" ? ["dragover", "drop"] : []) {
        target.dispatchEvent(new DragEvent(type, { dataTransfer: data, ...options }));
    }
}"""


def test_pasted_and_dropped_files_come_with_the_question_and_are_deleted_unless_they_are_kept(
    enter: SignIn, real_service: RealService
) -> None:
    ali = real_service.add_person("ali")
    one = enter(ali)
    add(one, upload_of("notes.txt", "The bridge of Ravel is 80 metres long."))
    one.page.click("nav a[data-to=ask]")
    one.page.evaluate(GIVE, ["paste", "notes.txt", "The bridge of Ravel is 95 metres long."])
    one.page.fill("#question", "How long is the bridge of Ravel?")
    one.page.press("#question", "Enter")  # waits until the file is read
    one.page.wait_for_selector(".turn .why")
    last = one.page.locator(".turn").last
    assert "95 metres" in last.locator(".answer-text").inner_text() and "80 metres" not in last.inner_text()
    expect(last).to_contain_text("Searched in: notes.txt", use_inner_text=True)
    one.page.evaluate(GIVE, ["drop", "more.txt", "The tower of Ravel is 30 metres high."])
    one.page.wait_for_selector("#scope:has-text('notes.txt, more.txt')")
    one.page.reload()
    one.page.get_by_label("Keep more.txt").check()
    one.page.wait_for_selector(".attached-file:has-text('more.txt'):has-text('kept in your documents')")

    def lifetimes() -> dict[str, bool]:
        corpus = one.client.get("/api/v1/corpora").json()["items"][0]["id"]
        items = one.client.get(f"/api/v1/corpora/{corpus}/documents").json()["items"]
        return {item["name"].rpartition("T")[0] + "/" + item["fileName"]: item["expiresAt"] is None for item in items}

    assert len(lifetimes()) == 3 and lifetimes()["/notes.txt"], "the one of the same name is still there"
    assert [kept for name, kept in lifetimes().items() if name.startswith("questions/")] == [True, False]
    one.page.get_by_role("button", name="Remove the file: notes.txt").click()
    one.page.wait_for_selector("#scope .scope-words:text-is('more.txt')")
    assert len(lifetimes()) == 2
    one.page.click("#new-conversation")
    one.page.wait_for_selector("#scope:has-text('All documents')")
    expect(one.page.locator(".attached-file")).to_have_count(0)
    one.page.evaluate(GIVE, ["paste", "picture.xyz", "\0"])
    one.page.wait_for_selector("#attached .upload[data-state=failed] >> text=cannot be read")


def test_dropped_file_is_uploaded_from_anywhere(enter: SignIn, real_service: RealService) -> None:
    one = enter(real_service.add_person("gil"))
    one.page.click("nav a[data-to=conversations]")
    one.page.wait_for_selector("#conversations-title:focus")
    one.page.evaluate(GIVE, ["drop", "dropped.txt", "Hello from the drop."])
    one.page.wait_for_selector(".upload[data-state=done] >> text=dropped.txt")
    assert one.page.url.endswith("#documents")
    assert "Hello from the drop." in ask(one, "What comes from the drop?")


@pytest.mark.slow
def test_ten_thousand_documents_are_listed_at_once(enter: SignIn, real_service: RealService) -> None:
    hal = real_service.add_person("hal")
    with real_service.client(hal) as client:
        corpus = client.post("/api/v1/corpora", json={"name": "documents"}).json()["id"]
    with psycopg.connect(real_service.owner_conninfo, autocommit=True) as owner:
        owner.execute(
            """INSERT INTO rag.documents (id, corpus_id, name, title, file_name, content_hash, fingerprint, chunk_count,
                                          created_at)
               SELECT gen_random_uuid(), %s, 'file-' || n, 'File ' || n, 'file-' || n || '.md',
                      lpad(to_hex(n), 64, '0'), 'f', 1, now() - n * interval '1 minute'
               FROM generate_series(1, 10000) AS n""",
            [corpus],
        )
    one = enter(hal)

    def list_them() -> float:
        one.page.click("nav a[data-to=ask]")
        started = time.monotonic()
        one.page.click("nav a[data-to=documents]")
        one.page.wait_for_selector("text=1–50 of 10,000")
        return time.monotonic() - started

    bar = LISTED_WITHIN * slowness()
    assert best_of_several(list_them, bar) <= bar
    one.page.click("nav a[data-to=ask]")
    one.page.click("nav a[data-to=documents]")
    one.page.click("text=Next")
    one.page.wait_for_selector("text=51–100 of 10,000")
    expect(row(one, "file-51.md")).to_have_count(1)
    expect(one.page.locator("#documents-list .row")).to_have_count(50)
