"""Where no answer is certain, the page shows places as cards: whole, without a badge, and they open."""

from __future__ import annotations

import pytest

from tests.acceptance.page_actions import MARKED, add
from tests.integration.web.browser import NARROWEST, PHONE, WIDE, browser, expect
from tests.integration.web.papers import upload_of
from tests.integration.web.real import RealService, SignIn, enter, real_service

__all__ = ["browser", "enter", "real_service"]  # fixtures

pytestmark = pytest.mark.slow

NOTE = (
    "# Umbrella stand\n\nThe umbrella stand of the lower hall was bought for the visitors of the museum in spring, is"
    " emptied every evening by whoever locks the doors, and holds at most **forty** umbrellas of ordinary length.\n"
)
QUESTION = "may visitors of the castle leave a wet umbrella overnight?"
CUT = "one => one.scrollHeight > one.clientHeight"


@pytest.mark.parametrize("size", [WIDE, PHONE, NARROWEST])
def test_a_place_is_shown_whole_without_a_badge_and_opens(
    enter: SignIn, real_service: RealService, size: tuple[int, int]
) -> None:
    one = enter(real_service.admin, size=size)
    add(one, upload_of("umbrellas.md", NOTE.encode()))
    one.page.click("nav a[data-to=ask]")
    one.page.fill("#question", QUESTION)
    one.page.press("#question", "Enter")
    turn = one.page.locator(".turn").last
    card = turn.locator(".found-place", has_text="umbrella").first
    expect(card).to_contain_text("holds at most forty umbrellas of ordinary length.")
    expect(turn.locator(".badge")).to_have_count(0)
    assert not card.locator(".found-text").evaluate(CUT)
    card.click()
    expect(one.page.locator(MARKED).first).to_be_visible()
