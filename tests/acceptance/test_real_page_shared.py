"""What a colleague sees: shared corpora are theirs to ask about, and an empty page says what to do."""

from __future__ import annotations

from tests.acceptance.page_actions import NOTE, add, ask, documents, fill, manage, press, row
from tests.integration.web.browser import Visit, browser, expect, find_axe, serious_findings
from tests.integration.web.papers import upload_of
from tests.integration.web.real import RealService, SignIn, enter, real_service

__all__ = ["browser", "enter", "real_service"]  # fixtures


VACATION = "How many days of vacation do employees receive?"


def welcome(one: Visit) -> str:
    one.page.wait_for_selector("#no-documents .notice")
    return str(one.page.locator("#no-documents").inner_text())


def test_empty_page_says_what_to_do_for_the_role_that_reads_it(enter: SignIn, real_service: RealService) -> None:
    axe = find_axe()
    boss, user = enter(real_service.admin, bypass_csp=True), enter(real_service.add_person("una"))
    reader = enter(real_service.add_person("rex", scopes=("read",)), locale="es-ES")
    assert "everyone who may read them" in welcome(boss)
    assert axe is None or serious_findings(boss.page, axe) == []
    assert "Add your own, or ask an administrator" in welcome(user)
    assert "Pida a un administrador" in welcome(reader)
    assert [one.page.locator("#no-documents a").count() for one in (boss, user, reader)] == [1, 1, 0]
    expect(boss.page.locator("#examples"), "nothing would answer them").to_be_hidden()
    boss.page.click("#no-documents a")
    boss.page.wait_for_selector("#drop-zone:not([hidden])")
    assert "ask an administrator" in ask(user, "How many days?")


def test_colleague_asks_over_what_the_administrator_shares_and_sees_nobodys_own(
    enter: SignIn, real_service: RealService
) -> None:
    boss, ivo = enter(real_service.admin), enter(real_service.add_person("ivo"))
    welcome(ivo)
    add(boss, upload_of("leave.md", NOTE))
    ivo.page.reload()
    ivo.page.wait_for_selector("#account:not([hidden])")
    assert "25 days" in ask(ivo, VACATION)
    expect(ivo.page.locator("#no-documents .notice")).to_have_count(0)
    documents(ivo)
    expect(ivo.page.locator("#corpus option")).to_have_text(
        ["documents · personal", "documents · global"], use_inner_text=True
    )
    expect(ivo.page.locator("#documents-list")).to_contain_text("shared with you", use_inner_text=True)
    ivo.page.select_option("#corpus", label="documents · global")
    row(ivo, "leave.md").wait_for()
    expect(ivo.page.locator("#drop-zone")).to_be_hidden()
    expect(row(ivo, "leave.md").locator("button[title='Delete']")).to_have_count(0)

    ivo.page.select_option("#corpus", label="documents · personal")
    ivo.page.set_input_files("#files", [upload_of("diary.md", "# Diary\n\nIvo keeps seven bees in a shoe box.\n")])
    ivo.page.wait_for_selector(".upload[data-state=done]")
    assert "seven bees" in ask(ivo, "How many bees does Ivo keep?")
    assert "seven bees" not in ask(boss, "How many bees does Ivo keep?")
    manage(boss, "corpora")
    expect(boss.page.locator("#manage-list .row")).to_have_count(1)

    press(boss, "documents", "Edit")
    boss.page.locator(".dialog").get_by_label("Everyone can read it").uncheck()
    fill(boss)
    boss.page.wait_for_selector(".row >> text=readable through agents only")
    assert "25 days" not in ask(ivo, VACATION), "no longer shared"
