"""What a third visitor stumbled over: words, marks and names stay readable, and nothing is offered that is not there."""

from __future__ import annotations

import uuid

from tests.acceptance.page_actions import NOTE, add, ask
from tests.integration.web.browser import PHONE, browser
from tests.integration.web.papers import upload_of
from tests.integration.web.real import RealService, SignIn, enter, real_service

__all__ = ["browser", "enter", "real_service"]  # fixtures

VACATION = "How many days of vacation do employees receive?"


def test_the_question_box_keeps_its_height_where_it_is_emptied_out_of_sight(
    enter: SignIn, real_service: RealService
) -> None:
    one = enter(real_service.add_person("hidden-box"), size=PHONE)
    box = one.page.locator("#question")
    height = box.evaluate("box => box.clientHeight")
    one.page.click("nav a[data-to=documents]")
    box.evaluate("box => { box.value = ''; box.dispatchEvent(new Event('input')); }")
    one.page.click("nav a[data-to=ask]")
    assert box.evaluate("box => box.clientHeight") == height
    box.fill("one\ntwo\nthree")
    assert box.evaluate("box => box.clientHeight") > height, "it grows with its text"


def test_a_new_question_ends_what_was_said_of_a_conversation_that_is_gone(
    enter: SignIn, real_service: RealService
) -> None:
    one = enter(real_service.add_person("stale-notice"))
    add(one, upload_of("leave.md", NOTE))
    one.page.evaluate(f"location.hash = '#ask/{uuid.uuid4()}'")
    one.page.wait_for_selector(".ask .notice-error")
    ask(one, VACATION)
    assert one.page.locator(".ask .notice-error").count() == 0
