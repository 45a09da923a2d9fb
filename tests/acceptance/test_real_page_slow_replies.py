"""A reader quicker than the service: what comes late neither fails nor takes the place of what is wanted by now."""

from __future__ import annotations

from typing import Any

import pytest

from tests.acceptance.page_actions import NOTE, add, documents, row
from tests.integration.web.browser import Visit, browser
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
    assert one.page.locator("#documents-list .row-title").all_inner_texts() == ["report 2.md", "report.md"]


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
    assert one.page.locator("#manage-list-title").inner_text() == "Sources"

    held = hold(one, "**/corpora?*")
    one.page.click("#manage-lists a[data-list=retrieval]")
    one.page.wait_for_selector("#manage-lists a[data-list=retrieval][aria-current]")
    while not held:
        one.page.wait_for_timeout(20)
    one.page.click("#manage-lists a[data-list=sources]")
    one.page.wait_for_selector("#manage-list-title >> text=Sources")
    with one.page.expect_event("requestfinished"):
        release(one, held, "**/corpora?*")
    one.page.evaluate("() => new Promise(requestAnimationFrame)")
    assert one.page.locator("#manage-list-title").inner_text() == "Sources"


def test_focus_stays_on_the_choice_of_all_documents(enter: SignIn, real_service: RealService) -> None:
    one = enter(real_service.add_person("cid"))
    add(one, upload_of("leave.md", NOTE), upload_of("report.md", f"{NOTE}Report."))
    documents(one)
    row(one, "leave.md").get_by_role("checkbox").check()
    one.page.locator("#documents-selection button", has_text="Select all shown").press("Enter")
    assert one.page.locator("#documents-list input:checked").count() == 2
    assert one.page.locator("*:focus").inner_text() == "Select all shown"
    one.page.locator("#documents-selection button", has_text="Select none").press("Enter")
    one.page.wait_for_selector("#documents-selection", state="hidden")
    assert one.page.locator("*:focus").get_attribute("id") == "documents-title"
