"""The page as its people meet it: the whole service behind a login, in a real browser."""

from __future__ import annotations

import uuid

import pytest

from tests.acceptance.page_actions import NOTE, add, ask, documents, fill, manage, opened, press, row
from tests.integration.web.browser import browser, expect
from tests.integration.web.papers import upload_of
from tests.integration.web.real import RealService, SignIn, enter, real_service, sign_in

__all__ = ["browser", "enter", "real_service"]  # fixtures


# -- signing in


def test_page_asks_for_a_key_tries_it_and_forgets_it(enter: SignIn, real_service: RealService) -> None:
    ana = real_service.add_person("ana")
    one = enter()
    one.page.wait_for_selector("#sign-in[open]")
    for _ in range(2):
        one.page.keyboard.press("Escape")
    one.page.wait_for_selector("#sign-in[open]")  # a second Escape closes any dialog; this one comes back
    for wrong, words in (
        ("", "Enter a key"),
        ("añb", "This is not a valid key"),
        ("rag_wrong", "unknown, revoked or expired"),
    ):
        one.page.fill("#credential", wrong)
        one.page.press("#credential", "Enter")
        one.page.wait_for_selector(f"#sign-in-messages >> text={words}")
    sign_in(one, f"Bearer {ana.key}")
    expect(one.page.locator("#user-name")).to_have_text("ana", use_inner_text=True)
    kept = one.page.evaluate("[Object.values(sessionStorage), Object.values(localStorage), document.cookie]")
    assert (ana.key in kept[0], kept[1], kept[2]) == (True, [], "")
    one.page.reload()
    one.page.wait_for_selector("#account:not([hidden])")
    one.page.fill("#question", "a secret thought")
    one.page.click("#sign-out")
    one.page.wait_for_selector("#sign-in[open]")
    assert one.page.evaluate("Object.values(sessionStorage).join('')") == ""
    expect(one.page.locator("#question")).to_have_value("")


def test_sign_in_that_ends_midway_loses_nothing_and_shows_nothing_to_the_next_user(
    enter: SignIn, real_service: RealService
) -> None:
    bea, next_user = real_service.add_person("bea"), real_service.add_person("next")
    one = enter(bea)
    add(one, upload_of("leave.md", NOTE))
    # The list asks once more after the upload; were it refused first, the dialog would catch the question's Enter.
    one.page.wait_for_selector("#documents-list .row:has-text('leave.md'):has-text('1 passage')")
    assert "25 days" in ask(one, "How many days of vacation do employees receive?")
    with real_service.client(real_service.admin) as admin:  # a key that a key makes ends with it
        another = admin.post("/api/v1/keys", json={"name": "another", "userId": bea.id}).json()["key"]
    keys = one.client.get("/api/v1/keys").json()["items"]
    for key in keys:
        if key["name"] == "test":
            one.client.delete(f"/api/v1/keys/{key['id']}")
    one.page.fill("#question", "And at Christmas?")
    one.page.press("#question", "Enter")
    one.page.wait_for_selector("#sign-in-messages >> text=Your session has ended")
    one.page.press("#credential", "Enter")
    one.page.wait_for_selector("#sign-in-messages >> text=Enter a key")
    expect(one.page.locator("#sign-in-messages")).to_contain_text("Your session has ended", use_inner_text=True)
    sign_in(one, another)
    expect(one.page.locator("#question")).to_have_value("And at Christmas?")
    expect(one.page.locator(".turn")).to_have_count(2)
    one.page.evaluate("sessionStorage.rag_credential = 'rag_gone'")
    one.page.reload()
    one.page.wait_for_selector("#sign-in[open]")
    one.page.fill("#credential", next_user.key)
    one.page.press("#credential", "Enter")
    one.page.wait_for_selector("#user-name:has-text('next')")
    expect(one.page.locator(".turn")).to_have_count(0)
    assert "25 days" not in one.page.locator("body").inner_text()


def test_page_is_open_and_everything_with_data_is_closed(real_service: RealService) -> None:
    closed = []
    with real_service.client() as client:
        page = client.get("/")
        assert page.status_code == 200
        assert 'id="sign-in"' in page.text
        for route in real_service.application.routes:
            path = "/".join(
                str(uuid.uuid4()) if part.startswith("{") else part for part in route.path_format.split("/")
            )
            if path in ("/", "/openapi.json", "/docs"):  # the last two lead to /schema
                continue
            if path.startswith(("/assets/", "/schema", "/health", "/v1/models/", "/.well-known/")):
                continue
            methods = set(getattr(route, "methods", ())) - {"OPTIONS", "HEAD"}
            closed += [(method, path, client.request(method, path).status_code) for method in methods]
    assert len(closed) > 40
    # The OpenAI addresses answer unknown methods in that API's own words.
    assert [one for one in closed if one[2] != 401 and not (one[1].startswith("/v1/") and one[2] == 404)] == []


def test_reader_is_offered_no_writing(enter: SignIn, real_service: RealService) -> None:
    one = enter(real_service.add_person("reader", scopes=("read",)))
    one.page.click("nav a[data-to=documents]")
    one.page.wait_for_selector("#corpus-note:not([hidden])")
    expect(one.page.locator("#drop-zone")).to_be_hidden()
    manage(one, "corpora")
    expect(one.page.locator("#manage-list button:visible")).to_have_count(0)
    expect(one.page.locator("#manage-lists a")).to_have_text(
        ["Corpora", "Sources", "Agents", "API keys"], use_inner_text=True
    )


def test_a_source_tells_how_it_went(enter: SignIn, real_service: RealService) -> None:
    one = enter(real_service.add_person("walter"))
    manage(one, "sources")
    one.page.click("text=New source")
    fill(one, Address="http://127.0.0.1:9/")
    one.page.wait_for_selector("#manage-list .row >> text=failed")  # the list looks again by itself
    expect(row(one, "127.0.0.1")).to_contain_text("127.0.0.1 is not on the public internet", use_inner_text=True)
    press(one, "127.0.0.1", "Delete")
    one.page.click(".dialog button[type=submit]")
    one.page.wait_for_selector("text=There are no sources yet.")


# -- agents


def test_agent_answers_from_its_corpora_follows_up_and_says_when_it_does_not(
    enter: SignIn, real_service: RealService
) -> None:
    boss, ivy = real_service.admin, real_service.add_person("ivy")
    one = enter(boss)
    expect(one.page.locator("#agent-choice"), "there is no agent yet").to_be_hidden()
    manage(one, "corpora")
    one.page.click("text=New corpus")
    expect(one.page.get_by_label("Index definition").locator("option").first).to_have_text(
        "general", use_inner_text=True
    )
    fill(one, Name="handbook")
    one.page.wait_for_selector("#manage-list .row >> text=handbook")
    manage(one, "agents")
    one.page.click("text=New agent")
    one.page.locator(".dialog").get_by_label("handbook · global").check()
    fill(one, Name="Helper", Description="Knows the handbook")
    row(one, "Helper").wait_for()
    documents(one)
    expect(one.page.locator("#corpus option:checked"), "it has just been made").to_have_text(
        "handbook · global", use_inner_text=True
    )
    one.page.set_input_files("#files", [upload_of("leave.md", NOTE + "\nTrainees receive 30 days of vacation.\n")])
    one.page.wait_for_selector(".upload[data-state=done]")

    two = enter(ivy)
    two.page.wait_for_selector("#agent-choice:not([hidden])")
    two.page.select_option("#agent", label="Helper")
    assert "25 days" in ask(two, "How many days of vacation do employees receive?")
    expect(two.page.locator(".turn").last).to_contain_text("Asked Helper", use_inner_text=True)
    ask(two, "And trainees?")
    asked = "How many days of vacation do employees receive?"
    expect(two.page.locator(".turn").last).to_contain_text(f"Searched for: {asked} And trainees?", use_inner_text=True)
    ask(two, "¿Cuál es el mejor restaurante de Kioto?")
    last = two.page.locator(".turn").last
    expect(last.locator(".decision")).to_contain_text("Not from your documents", use_inner_text=True)
    conversations = two.client.get("/api/v1/conversations").json()
    assert conversations["total"] == 1, "follow-ups belong to one conversation"
    two.page.reload()
    two.page.wait_for_selector(".turn:nth-child(3) .asked-agent")
    two.page.wait_for_selector("#agent-choice:not([hidden])")
    opened(two, "ask")
    expect(two.page.locator("#agent option:checked")).to_have_text("Helper", use_inner_text=True)
    expect(two.page.locator("#agent-switch")).to_be_hidden()
    two.page.select_option("#agent", label="No agent")
    expect(two.page.locator("#agent-switch")).to_contain_text("starts a new conversation", use_inner_text=True)
    two.page.select_option("#agent", label="Helper")
    expect(two.page.locator("#agent-switch")).to_be_hidden()
    two.page.click("#new-conversation")
    expect(two.page.locator(".turn")).to_have_count(0)
    expect(two.page.locator("#welcome")).to_be_visible()
    ask(two, "How many days of vacation do employees receive?")
    assert two.client.get("/api/v1/conversations").json()["total"] == 2


def test_what_is_offered_to_be_asked_next_leads_to_its_answer(enter: SignIn, real_service: RealService) -> None:
    one = enter(real_service.add_person("nell"))
    other = "# Vacation pay\n\n## How much vacation pay do employees receive?\n\nEmployees receive 400 euros in June.\n"
    add(one, upload_of("leave.md", NOTE), upload_of("benefits.md", other))
    ask(one, "How many days of vacation do employees receive?")
    one.page.get_by_role("button", name="How much vacation pay do employees receive?").click()
    one.page.wait_for_selector(".turn:nth-child(2) .why")
    expect(one.page.locator(".turn").last).to_contain_text("400 euros", use_inner_text=True)
    expect(one.page.locator(".turn").last).to_contain_text("benefits.md", use_inner_text=True)


# -- feedback


def test_feedback_is_given_changed_taken_back_reviewed_and_exported(enter: SignIn, real_service: RealService) -> None:
    jo = real_service.add_person("jo")
    one = enter(jo)
    add(one, upload_of("leave.md", NOTE))
    ask(one, "How many days of vacation do employees receive?")
    one.page.click("button[title='Good answer']")
    one.page.wait_for_selector("button[title='Good answer'][aria-pressed=true]")
    one.page.click("button[title='Bad answer']")
    one.page.wait_for_selector("button[title='Bad answer'][aria-pressed=true]")
    one.page.fill(".feedback-form textarea", "Part-time staff is <b>missing</b>.")
    one.page.click("text=Save comment")
    one.page.wait_for_selector(".feedback-given >> text=Part-time staff is <b>missing</b>.")
    one.page.reload()
    one.page.wait_for_selector("button[title='Bad answer'][aria-pressed=true]")

    two = enter(real_service.admin)
    manage(two, "feedback")
    expect(row(two, "How many days of vacation")).to_contain_text(
        "Part-time staff is <b>missing</b>.", use_inner_text=True
    )
    with two.page.expect_download() as saved:
        two.page.get_by_role("button", name="Export").click()
    assert "Part-time staff" in saved.value.path().read_text()

    one.page.click("button[title='Bad answer']")
    one.page.wait_for_selector("button[title='Bad answer'][aria-pressed=false]")
    assert one.client.get("/api/v1/feedback").json()["total"] == 0

    one.page.locator(".badge").first.click()
    one.page.click("#panel button[title='It does not prove it']")
    one.page.fill("#panel textarea", "It is about trainees.")
    one.page.click("#panel >> text=Save comment")
    one.page.wait_for_selector("#panel .feedback-given >> text=It is about trainees.")
    one.page.keyboard.press("Escape")
    assert one.page.locator("button[title='Bad answer'][aria-pressed=false]").count() == 1, (
        "the answer itself is as it was"
    )
    (given,) = one.client.get("/api/v1/feedback").json()["items"]
    assert (given["citation"], given["thumbs"], "25 days" in given["quote"]) == (0, "down", True)
    manage(two, "corpora")
    manage(two, "feedback")
    expect(row(two, "It is about trainees.")).to_contain_text("On the citation “", use_inner_text=True)
    assert two.client.get("/api/v1/feedback/export?format=eval").text == "", "no question of an eval set"
    one.page.reload()
    one.page.wait_for_selector(".turn .badge")
    one.page.locator(".badge").first.click()
    one.page.click("#panel button[title='It does not prove it'][aria-pressed=true]")
    one.page.wait_for_selector("#panel button[title='It does not prove it'][aria-pressed=false]")
    assert one.client.get("/api/v1/feedback").json()["total"] == 0
    at = f"/api/v1/answers/{given['answerId']}/feedback"
    assert one.client.put(at, json={"thumbs": "up", "citation": 99}).status_code == 404
    assert one.client.delete(f"{at}?citation=x").status_code == 400


# -- managing


def test_administrator_makes_a_user_and_a_key_that_works_until_it_is_revoked(
    enter: SignIn, real_service: RealService
) -> None:
    one = enter(real_service.admin)
    manage(one, "users")
    one.page.click("text=New user")
    fill(one, Name="kim")
    one.page.wait_for_selector(".dialog >> text=New key for kim")
    fill(one, Name="kim's laptop")
    secret = one.page.input_value(".secret")
    one.page.click(".dialog >> text=Done")
    expect(one.page.locator(".dialog")).to_have_count(0)
    assert secret not in one.page.content()
    with real_service.client() as client:
        headers = {"Authorization": f"Bearer {secret}"}
        assert client.get("/api/v1/users/me", headers=headers).json()["scopes"] == ["read", "write"]
        manage(one, "keys")
        press(one, "kim's laptop", "Revoke")
        one.page.click(".dialog button[type=submit]")
        one.page.wait_for_selector('.row:has-text("kim\'s laptop") .chip-bad')
        assert client.get("/api/v1/users/me", headers=headers).status_code == 401
    manage(one, "users")
    press(one, "kim", "Delete")
    one.page.click(".dialog button[type=submit]")
    one.page.wait_for_selector("#status >> text=kim has been deleted", state="attached")
    expect(row(one, "kim")).to_have_count(0)


def test_refusals_show_at_the_field_that_they_name_and_keep_what_was_typed(
    enter: SignIn, real_service: RealService
) -> None:
    one = enter(real_service.add_person("lou"))
    manage(one, "corpora")
    for _ in range(2):
        one.page.click("text=New corpus")
        fill(one, Name="notes")
    one.page.wait_for_selector(".dialog .fault:not([hidden])")
    field = one.page.locator(".dialog").get_by_label("Name", exact=True)
    assert (field.get_attribute("aria-invalid"), field.input_value()) == ("true", "notes")
    expect(field).to_be_focused()
    expect(one.page.locator(".dialog .fault:visible")).to_contain_text("already exists", use_inner_text=True)
    fill(one, Name="other notes")
    one.page.wait_for_selector("#manage-list .row >> text=other notes")
    press(one, "other notes", "Deactivate")
    one.page.click(".dialog button[type=submit]")
    one.page.wait_for_selector(".row:has-text('other notes') .chip-warn")
    press(one, "other notes", "Edit")
    fill(one, Name="renamed")
    one.page.wait_for_selector("#manage-list .row >> text=renamed")
    press(one, "renamed", "Delete")
    one.page.keyboard.press("Escape")
    expect(row(one, "renamed")).to_have_count(1)
    press(one, "renamed", "Delete")
    one.page.click(".dialog button[type=submit]")
    one.page.wait_for_selector("#status >> text=renamed has been deleted", state="attached")
    expect(row(one, "renamed")).to_have_count(0)


@pytest.mark.slow
def test_what_another_administrator_has_deleted_is_told_and_leaves_the_list(
    enter: SignIn, real_service: RealService
) -> None:
    one = enter(real_service.admin)
    for kind, body in (("corpora", {"kind": "global"}), ("agents", {}), ("users", {})):
        name = f"gone from the {kind}"
        at = f"/api/v1/{kind}"
        made = one.client.post(at, json={"name": name, **body}).raise_for_status().json()["id"]
        manage(one, kind)
        row(one, name).wait_for()
        one.client.delete(f"{at}/{made}").raise_for_status()
        press(one, name, "Edit")
        one.page.click(".dialog button[type=submit]")
        one.page.wait_for_selector(".dialog .notice-error >> text=cannot be found")
        one.page.keyboard.press("Escape")
        row(one, name).wait_for(state="detached")
        expect(one.page.locator(".dialog")).to_have_count(0)
