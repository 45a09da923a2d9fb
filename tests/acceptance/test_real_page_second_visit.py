"""What a second visitor stumbled over: the page stays clear when something fails, moves or is gone."""

from __future__ import annotations

import re

from tests.acceptance.page_actions import MARKED, NOTE, add, ask, documents
from tests.integration.web.browser import PHONE, browser, expect
from tests.integration.web.papers import REPORT, upload_of
from tests.integration.web.real import RealService, SignIn, enter, real_service
from tests.unit.readers.office_samples import pptx, shape

__all__ = ["browser", "enter", "real_service"]  # fixtures

VACATION = "How many days of vacation do employees receive?"
FAILED = "#uploads .upload[data-state=failed]"
AT_REST = 500  # milliseconds; longer than a tooltip waits


def test_a_repaired_file_ends_the_failure_of_its_earlier_upload(enter: SignIn, real_service: RealService) -> None:
    one = enter(real_service.add_person("repairs"))
    documents(one)
    broken = [upload_of(name, b"%PDF-1.4 rubbish") for name in ("first.pdf", "second.pdf")]
    one.page.set_input_files("#files", [*broken, upload_of("large.csv", b"a;b\n" * 300_000)])
    one.page.wait_for_selector("#uploads-count:text-is('0 of 3, 3 failed')")
    one.page.set_input_files("#files", [upload_of("first.pdf", REPORT), upload_of("large.csv", b"a;b\n1;2\n")])
    one.page.wait_for_selector("#uploads-count:text-is('2 of 3, 1 failed')")
    expect(one.page.locator(FAILED)).to_contain_text("second.pdf", use_inner_text=True)


def test_a_pointer_at_rest_opens_no_tooltip_over_what_moves_below_it(enter: SignIn, real_service: RealService) -> None:
    one = enter(real_service.add_person("rests"))
    add(one, upload_of("leave.md", NOTE))
    ask(one, VACATION)
    one.page.wait_for_selector("#share-conversation:visible")  # above the answer, and comes after it
    edit, badge = one.page.get_by_role("button", name="Edit question"), one.page.locator(".turn .badge").first
    edit.press("Enter")
    one.page.wait_for_selector(".turn textarea")
    box = badge.bounding_box()
    assert box
    one.page.keyboard.press("Escape")
    one.page.wait_for_selector(".turn textarea", state="detached")
    one.page.mouse.move(box["x"] + 20, box["y"] + box["height"] / 2)
    edit.press("Enter")
    one.page.wait_for_selector(".turn textarea")
    is_below = "([x, y]) => document.elementFromPoint(x, y)?.closest('.badge') !== null"
    one.page.wait_for_function(is_below, arg=[box["x"] + 20, box["y"] + box["height"] / 2])
    one.page.wait_for_timeout(AT_REST)
    expect(one.page.locator("#tooltip")).to_be_hidden()
    badge.hover()
    one.page.wait_for_selector("#tooltip:visible")


def test_exports_and_refusals_to_share_are_in_the_words_of_the_page(enter: SignIn, real_service: RealService) -> None:
    one = enter(real_service.add_person("palabras"), size=PHONE, locale="es-ES")
    add(one, upload_of("leave.md", NOTE))
    ask(one, VACATION)
    one.page.dblclick("#export-conversation")
    with one.page.expect_download() as saving:
        one.page.click(".dialog button[type=submit]")
    one.page.wait_for_selector(".dialog", state="detached")  # a second click has opened no second one
    text = saving.value.path().read_text(encoding="utf-8")
    assert "**Citado de los documentos**" in text
    assert "(cita exacta)" in text
    assert not re.search("proceed|verified|section", text), "codes and places in English"
    one.page.click("#share-conversation")
    one.page.click(".dialog button[type=submit]")
    refusal = one.page.locator(".dialog .notice-error").inner_text()
    assert "Nadie más podría leer esta conversación." in refusal


def test_places_in_parts_of_a_document_are_in_the_words_of_the_page(enter: SignIn, real_service: RealService) -> None:
    one = enter(real_service.add_person("notas"), locale="es-ES")
    deck = pptx([shape("Los pedidos son estables.")], notes={1: "La academia Lexis imparte el curso de inglés."})
    add(one, upload_of("curso.pptx", deck))
    ask(one, "¿Qué academia imparte el curso de inglés?")
    one.page.locator(".turn .badge").first.click()
    one.page.wait_for_selector(MARKED)
    expect(one.page.locator("#panel .panel-head")).to_contain_text(
        "notas del orador, diapositiva 1", use_inner_text=True
    )


def test_on_a_phone_the_name_of_a_deleted_document_is_not_cut_off(enter: SignIn, real_service: RealService) -> None:
    one = enter(real_service.add_person("deletes"), size=PHONE, locale="es-ES")
    add(one, upload_of("permisos y vacaciones.md", NOTE.replace("# Leave", "# Permisos y vacaciones")))
    ask(one, VACATION)
    for corpus in one.client.get("/api/v1/corpora").json()["items"]:
        for document in one.client.get(f"/api/v1/corpora/{corpus['id']}/documents").json()["items"]:
            one.client.delete(f"/api/v1/documents/{document['id']}")
    one.page.reload()
    name = one.page.locator(".turn .badge:has(.badge-status) .badge-name").first
    name.wait_for()
    assert name.evaluate("one => one.scrollWidth <= one.clientWidth + 1")


def test_of_corpora_of_one_name_the_chosen_one_is_told(enter: SignIn, real_service: RealService) -> None:
    add(enter(real_service.admin), upload_of("shared leave.md", NOTE))
    one = enter(real_service.add_person("chooses"))
    add(one, upload_of("leave.md", NOTE))
    one.page.click("nav a[data-to=ask]")
    one.page.click("#scope")
    one.page.get_by_label("documents · personal").check()
    one.page.click(".dialog button[type=submit]")
    expect(one.page.locator("#scope")).to_contain_text("personal", use_inner_text=True)
