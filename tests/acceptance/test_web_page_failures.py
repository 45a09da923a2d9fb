"""What the page says when something fails, and what hostile answers cannot do; in a real browser."""

from __future__ import annotations

import json

import pytest

from rag_service.errors import AuthenticationError, ModelBusyError, ModelError
from tests.integration.web.browser import Open, browser, expect, visit
from tests.integration.web.conftest import serve_page
from tests.integration.web.real import sign_in
from tests.integration.web.scenes import Scene

__all__ = ["browser", "serve_page", "visit"]  # fixtures


@pytest.mark.parametrize(
    ("error", "title", "help_text"),
    [
        (AuthenticationError("expired"), "not signed in", "Sign in again"),
        (ModelBusyError("full", retry_after=7), "model is busy", "in 7 seconds"),
        (ModelError("http://10.0.0.3"), "could not answer", "Try again shortly"),
    ],
)
def test_failure_says_what_happened_and_keeps_the_question(
    visit: Open, error: Exception, title: str, help_text: str
) -> None:
    scene = Scene(failing="authenticate" if isinstance(error, AuthenticationError) else "answer", error=error)
    one = visit(scene)
    one.ask("stock, please", until="[role=alert]")
    message = one.page.locator("[role=alert]").inner_text()
    assert title in message and help_text in message and "10.0.0.3" not in message
    expect(one.page.locator("#question")).to_have_value("stock, please")
    scene.failing = ""
    one.page.click("text=Ask again")
    one.page.wait_for_selector(".why")


def test_failure_midway_keeps_the_partial_answer(visit: Open) -> None:
    one = visit(Scene(ending=ModelError("gone")))
    one.ask("stock", until="[role=alert]")
    expect(one.page.locator(".answer-text")).to_contain_text("plant in Lyon", use_inner_text=True)
    expect(one.page.locator("[role=alert]")).to_contain_text("incomplete", use_inner_text=True)
    expect(one.badge(0)).to_have_attribute("data-status", "pending")


USER = {"id": "00000000-0000-0000-0000-000000000001", "name": "Ada", "role": "user", "scopes": ["read", "write"]}


@pytest.mark.parametrize("breaks", [False, True], ids=["answer goes on", "answer breaks"])
@pytest.mark.slow
def test_session_that_ends_while_an_answer_streams_asks_for_a_sign_in_and_loses_nothing(
    visit: Open, breaks: bool
) -> None:
    scene = Scene(pause=0.1, ending=AuthenticationError("expired") if breaks else None)
    one = visit(scene, settings={"auth": "required"})
    one.page.route("**/users/me", lambda route: route.fulfill(content_type="application/json", body=json.dumps(USER)))
    sign_in(one, "a-key")
    one.ask("stock in Lyon?", until=".answer-text:has-text('plant in Lyon')")
    if not breaks:
        one.page.route("**/api/v1/corpora*", lambda route: route.fulfill(status=401))
        one.page.click("nav a[data-to=documents]")
    one.page.wait_for_selector("#sign-in-messages >> text=Your session has ended")
    one.page.wait_for_selector("#credential:focus")
    one.page.wait_for_selector(".turn [role=alert]" if breaks else ".turn .why", state="attached")
    scene.ending = None
    sign_in(one, "another-key")
    one.page.click("nav a[data-to=ask]")
    assert one.page.locator(".asked").inner_text().endswith("stock in Lyon?")
    expect(one.page.locator(".answer-text")).to_contain_text("plant in Lyon", use_inner_text=True)
    if breaks:
        expect(one.page.locator(".turn [role=alert]")).to_contain_text("incomplete", use_inner_text=True)
        one.page.click("text=Ask again")
        one.page.wait_for_selector(".turn:only-child .why")


def test_stream_that_ends_early_keeps_the_partial_answer_and_says_so(visit: Open) -> None:
    one = visit()
    body = 'event: sources\ndata: {"sources": [], "contextUsed": []}\n\nevent: delta\ndata: {"text": "Half an ans"}\n\n'
    one.page.route("**/answer/stream", lambda route: route.fulfill(content_type="text/event-stream", body=body))
    one.ask("stock", until="[role=alert]")
    expect(one.page.locator(".answer-text")).to_have_text("Half an ans", use_inner_text=True)
    expect(one.page.locator("[role=alert]")).to_contain_text("connection was lost", use_inner_text=True)


def test_dead_server_is_told_and_nothing_typed_is_lost(visit: Open) -> None:
    one = visit()
    one.page.route("**/*", lambda route: route.abort())
    one.ask("a long thought", until="[role=alert]")
    expect(one.page.locator("[role=alert]")).to_contain_text("cannot be reached", use_inner_text=True)
    expect(one.page.locator("#question")).to_have_value("a long thought")
    one.page.unroute("**/*")
    one.page.reload()
    one.page.wait_for_selector("html.is-started")
    expect(one.page.locator("#question")).to_have_value("a long thought")


def test_hostile_answer_and_document_stay_text(visit: Open) -> None:
    one = visit()
    one.ask("hostile")
    expect(one.page.locator(".answer-text")).to_contain_text("<script>window.hacked", use_inner_text=True)
    expect(one.page.locator(".answer-text :is(a, img, script, iframe, svg:not(.icon))")).to_have_count(0)
    one.badge(0).click()
    one.page.wait_for_selector("#panel[open]")
    expect(one.page.locator("#panel :is(a, img, script, iframe)")).to_have_count(0)
    assert one.page.evaluate("window.hacked") is None


@pytest.mark.parametrize("role", ["admin", "user"])
def test_administrators_are_told_of_a_judge_that_is_not_used(visit: Open, role: str) -> None:
    one = visit()
    judge = {"name": "yes-man", "state": "failed", "detail": "Not used: a precision of 0.50."}
    ready = {"status": "ready", "dependencies": {}, "judge": judge}
    user = {**USER, "role": role, "scopes": ["read", "write", "admin"]}
    one.page.route(
        "**/health/ready", lambda route: route.fulfill(content_type="application/json", body=json.dumps(ready))
    )
    one.page.route("**/users/me", lambda route: route.fulfill(content_type="application/json", body=json.dumps(user)))
    with one.page.expect_response("**/users/me"):
        one.page.reload()
    told = one.page.locator("#service-notice", has_text="The judge (yes-man) did not pass its examination")
    told.filter(has_text="a precision of 0.50").wait_for(state="visible" if role == "admin" else "detached")


def test_file_given_while_the_server_is_away_is_told(visit: Open) -> None:
    one = visit()
    one.page.route("**/attach.js", lambda route: route.abort())  # the part for files is fetched with the first of them
    one.page.set_input_files("#attach", {"name": "note.txt", "mimeType": "text/plain", "buffer": b"Ten barrels."})
    told = one.page.locator(".ask .view-messages [role=alert]")
    expect(told).to_contain_text("cannot be reached", use_inner_text=True)
