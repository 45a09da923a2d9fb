"""A reader quicker than the service: what comes late neither fails nor takes the place of what is wanted by now."""

from __future__ import annotations

from typing import Any

import pytest

from tests.acceptance.page_actions import NOTE, add, ask, documents, opened, row
from tests.integration.web.browser import Visit, browser, expect
from tests.integration.web.papers import upload_of
from tests.integration.web.real import RealService, SignIn, enter, real_service

__all__ = ["browser", "enter", "real_service"]  # fixtures


def hold(one: Visit, pattern: str) -> list[Any]:
    """Requests that get no reply before `release`."""
    held: list[Any] = []
    one.page.route(pattern, lambda route: held.append(route))
    return held


def release(one: Visit, held: list[Any], pattern: str) -> None:
    while not held:
        one.page.wait_for_timeout(20)
    for route in held:
        route.continue_()
    one.page.unroute(pattern)


@pytest.mark.slow
def test_documents_searched_and_sorted_before_they_are_known_are_listed_as_was_wanted(
    enter: SignIn, real_service: RealService
) -> None:
    one = enter(real_service.add_person("ann"))
    add(one, *(upload_of(name, f"{NOTE}{name}") for name in ("leave.md", "report.md", "report 2.md")))
    held = hold(one, "**/corpora?*")
    one.page.reload()
    one.page.wait_for_selector("#account:not([hidden])")
    one.page.fill("#documents-search", "report")
    one.page.select_option("#documents-sort", "name")
    release(one, held, "**/corpora?*")
    row(one, "report 2.md").wait_for()
    expect(one.page.locator("#documents-list .row-title")).to_have_text(
        ["report 2.md", "report.md"], use_inner_text=True
    )


@pytest.mark.slow
def test_a_list_to_manage_that_comes_late_does_not_replace_the_one_chosen_since(
    enter: SignIn, real_service: RealService
) -> None:
    one = enter(real_service.add_person("bob"))
    held = hold(one, "**/manage_corpora.js")
    one.page.click("nav a[data-to=manage]")
    one.page.click("#manage-lists a[data-list=sources]")
    one.page.wait_for_selector("#manage-list-title >> text=Sources")
    release(one, held, "**/manage_corpora.js")
    one.page.evaluate("url => import(url).then(() => null)", held[0].request.url)  # it is there, and has had its turn
    expect(one.page.locator("#manage-list-title")).to_have_text("Sources", use_inner_text=True)

    held = hold(one, "**/corpora?*")
    one.page.click("#manage-lists a[data-list=retrieval]")
    one.page.wait_for_selector("#manage-lists a[data-list=retrieval][aria-current]")
    while not held:
        one.page.wait_for_timeout(20)
    one.page.click("#manage-lists a[data-list=sources]")
    one.page.wait_for_selector("#manage-list-title >> text=Sources")
    with one.page.expect_event("requestfinished", lambda request: "/corpora?" in request.url):
        release(one, held, "**/corpora?*")
    one.page.evaluate("() => new Promise(requestAnimationFrame)")
    expect(one.page.locator("#manage-list-title")).to_have_text("Sources", use_inner_text=True)


def test_a_question_that_is_quicker_than_the_part_for_files_waits_for_the_file(
    enter: SignIn, real_service: RealService
) -> None:
    one = enter(real_service.add_person("dan"))
    held = hold(one, "**/attach.js")
    one.page.set_input_files("#attach", [upload_of("leave.md", NOTE)])
    one.page.fill("#question", "How many days of vacation do employees receive?")
    one.page.press("#question", "Enter")
    expect(one.page.locator("#question-hint .keys")).to_contain_text("as soon as it is ready")
    release(one, held, "**/attach.js")
    one.page.wait_for_selector(".turn .why")
    expect(one.page.locator(".turn")).to_contain_text("Searched in: leave.md")


def test_an_agent_that_is_chosen_before_the_conversation_is_there_stays_chosen(
    enter: SignIn, real_service: RealService
) -> None:
    with real_service.client(real_service.admin) as client:
        client.post("/api/v1/agents", json={"name": "Helper"}).raise_for_status()
    one = enter(real_service.add_person("eli"))
    ask(one, "How many days of vacation do employees receive?")
    held = hold(one, "**/conversations/*")
    one.page.reload()
    one.page.wait_for_selector("#agent-choice:not([hidden])")
    one.page.select_option("#agent", label="Helper")
    release(one, held, "**/conversations/*")
    opened(one, "ask")
    expect(one.page.locator("#agent option:checked")).to_have_text("Helper")


def test_focus_stays_on_the_choice_of_all_documents(enter: SignIn, real_service: RealService) -> None:
    one = enter(real_service.add_person("cid"))
    add(one, upload_of("leave.md", NOTE), upload_of("report.md", f"{NOTE}Report."))
    documents(one)
    row(one, "leave.md").get_by_role("checkbox").check()
    one.page.locator("#documents-selection button", has_text="Select all shown").press("Enter")
    expect(one.page.locator("#documents-list input:checked")).to_have_count(2)
    expect(one.page.locator("*:focus")).to_have_text("Select all shown", use_inner_text=True)
    one.page.locator("#documents-selection button", has_text="Select none").press("Enter")
    one.page.wait_for_selector("#documents-selection", state="hidden")
    expect(one.page.locator("*:focus")).to_have_attribute("id", "documents-title")
