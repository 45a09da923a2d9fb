"""A conversation is shared from the page by keyboard, read by a colleague whose rights suffice, and by nobody else."""

from __future__ import annotations

import psycopg

from tests.acceptance.page_actions import NOTE, add, ask, row
from tests.integration.web.browser import PHONE, Visit, browser, expect, find_axe, serious_findings
from tests.integration.web.papers import upload_of
from tests.integration.web.real import Person, RealService, SignIn, enter, real_service

__all__ = ["browser", "enter", "real_service"]  # fixtures


VACATION = "How many days of vacation do employees receive?"
SHARED = "#shared-by:not([hidden])"


def limit_to_group(service: RealService, group: str, *members: Person) -> None:
    """Every global corpus is read by the members of a group alone."""
    with psycopg.connect(service.owner_conninfo) as connection:
        connection.execute("UPDATE rag.corpora SET shared = false, groups = %s WHERE kind = 'global'", [[group]])
        for member in members:
            connection.execute("UPDATE rag.users SET groups = %s WHERE id = %s", [[group], member.id])


def share(one: Visit) -> str:
    """The link, as the clipboard has it; by keyboard alone."""
    one.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    one.page.focus("#share-conversation")
    one.page.keyboard.press("Enter")
    one.page.wait_for_selector(".dialog button[type=submit]:focus")
    one.page.keyboard.press("Enter")
    one.page.wait_for_selector("#status >> text=The link has been copied", state="attached")
    one.page.wait_for_selector("#toast:visible >> text=The link has been copied")
    one.page.wait_for_selector("#share-conversation.is-shared:focus")
    return str(one.page.evaluate("navigator.clipboard.readText()"))


def clean(one: Visit) -> bool:
    axe = find_axe()
    return axe is None or serious_findings(one.page, axe) == []


def test_shared_conversation_is_read_with_its_proof_by_whoever_may_read_its_corpora_and_by_nobody_else(
    enter: SignIn, real_service: RealService
) -> None:
    ada, ben, eve = [real_service.add_person(name) for name in ("ada who shares", "ben who reads", "eve who may not")]
    boss = enter(real_service.admin)
    add(boss, upload_of("leave.md", NOTE))
    limit_to_group(real_service, "staff", ada, ben)
    one = enter(ada, bypass_csp=True)
    assert "25 days" in ask(one, VACATION)
    expect(one.page.locator(".link-answer")).to_be_hidden()
    link = share(one)
    address = link.removeprefix(real_service.url).removeprefix("/")
    assert address.startswith("#ask/")
    one.page.locator(".link-answer").press("Enter")
    one.page.wait_for_selector("#status:text-is('Copied')", state="attached")  # "The link has been copied" stood there
    answer = str(one.page.evaluate("navigator.clipboard.readText()"))
    assert answer.startswith(f"{link}/")
    one.page.focus("#share-conversation")

    two = enter(ben, at=answer.removeprefix(real_service.url).removeprefix("/"), bypass_csp=True)
    two.page.wait_for_selector(f"{SHARED} >> text=Shared by ada who shares")
    two.page.wait_for_selector(".turn h2:focus")
    turn = two.page.locator(".turn")
    expect(turn.locator(".answer-text")).to_contain_text("25 days", use_inner_text=True)
    assert [
        name for name in ("Ask again", "Edit question", "Good answer") if turn.get_by_role("button", name=name).count()
    ] == []
    expect(two.page.locator("#share-conversation")).to_be_hidden()
    turn.locator(".badge").first.press("Enter")
    expect(two.page.locator("#panel mark").first).to_contain_text("25 days", use_inner_text=True)
    expect(two.page.locator("#panel .thumbs")).to_have_count(0)
    two.page.keyboard.press("Escape")
    assert clean(two)
    two.page.reload()
    two.page.wait_for_selector(SHARED)

    two.page.click("nav a[data-to=conversations]")
    two.page.wait_for_selector("#conversations-list >> text=You have no conversations yet")
    two.page.get_by_label("Shared with me").press("Space")
    found = row(two, VACATION)
    expect(found).to_contain_text("ada who shares", use_inner_text=True)
    expect(found.get_by_role("button")).to_have_text([f"Export: {VACATION}"], use_inner_text=True)
    assert clean(two)
    found.get_by_role("link").click()
    two.page.wait_for_selector(SHARED)
    two.page.fill("#question", "And on Sundays?")
    two.page.press("#question", "Enter")
    two.page.wait_for_selector(".turn:only-child .why")
    expect(two.page.locator(SHARED), "a question begins a conversation of one's own").to_have_count(0)
    assert two.client.get("/api/v1/conversations").json()["total"] == 1
    assert len(one.client.get(f"/api/v1/conversations/{address.removeprefix('#ask/')}/messages").json()["items"]) == 2

    three = enter(eve, at=address, size=PHONE)
    three.page.wait_for_selector("section.ask .view-messages .notice-error >> text=cannot be found")
    expect(three.page.locator(".turn")).to_have_count(0)

    one.page.keyboard.press("Enter")
    one.page.wait_for_selector(".dialog .form-actions button:last-child:focus")
    assert one.page.locator(".dialog a").get_attribute("href") == link
    assert clean(one)
    one.page.get_by_role("button", name="Stop sharing").press("Enter")
    one.page.wait_for_selector("#share-conversation:not(.is-shared)")
    two.page.goto("about:blank")
    two.page.goto(f"/{address}")
    two.page.wait_for_selector("section.ask .view-messages .notice-error >> text=cannot be found")
