"""People with accounts in real browsers: a provider's sign-in, passwords by invitation, what stays after a sign-out."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from rag_service.store.embedded import EmbeddedServer
from tests.acceptance.page_actions import ask, documents, fill, manage, press, row
from tests.doubles.openid import OpenIdProvider, running_provider
from tests.integration.web.browser import Visit, browser, expect, find_axe, serious_findings, watch_page
from tests.integration.web.real import RealService, running_service

if TYPE_CHECKING:
    from playwright.sync_api import Browser

__all__ = ["browser"]  # a fixture


HOSTILE = "<img src=x onerror=alert(1)>\u202egnik\u2066"
PEOPLE = {
    "ana": {"name": "Ana", "groups": ["finance"]},
    "bea": {"name": HOSTILE, "groups": ["legal", "<script>alert(2)</script>", "\u202enimda\u2066"]},
}
SECRETS = {
    "finance": "The budget of finance is 412 amber stones.",
    "legal": "The budget of legal is 873 violet stones.",
}
QUESTION = "How many stones is the budget?"

Enter = Callable[..., Visit]


@pytest.fixture(scope="module")
def provider() -> Iterator[OpenIdProvider]:
    with running_provider(PEOPLE) as running:
        running.url = running.url.replace("127.0.0.1", "localhost")  # another site to the browser, as in real life
        yield running


@pytest.fixture
def visits(browser: Browser) -> Iterator[Callable[[RealService, str], Visit]]:
    """Opens the page in a browser of its own; fails on errors, violations and foreign requests."""
    made: list[Visit] = []

    def start(service: RealService, at: str = "", **context: Any) -> Visit:
        opened = browser.new_context(base_url=service.url, **{"locale": "en-US", **context})
        one = watch_page(opened.new_page(), service.client(), service.url)
        made.append(one)
        one.page.goto(f"/{at}")
        one.page.wait_for_selector("#sign-in[open]")
        return one

    yield start
    for one in made:
        one.page.context.close()
        assert one.errors == []


@contextmanager
def service_with(postgres: EmbeddedServer, **changes: Any) -> Iterator[RealService]:
    """A service that knows its own address before it starts."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        with running_service(postgres, listening=listening, public_url=url, **changes) as service:
            yield service


def through(one: Visit, subject: str, until: str = "#account:not([hidden])") -> None:
    """Sign in at the provider."""
    one.page.click("#to-provider")
    one.page.fill("input[name=sub]", subject)
    one.page.press("input[name=sub]", "Enter")
    one.page.wait_for_selector(until)


def text_of(one: Visit) -> str:
    return str(one.page.locator("body").inner_text())


def signed_out(one: Visit) -> bool:
    """Whether the page shows nothing of anybody."""
    one.page.wait_for_selector("#sign-in[open]")
    kept = one.page.evaluate("Object.values(sessionStorage).join('') + Object.values(localStorage).join('')")
    return not any(word in text_of(one) + kept for word in ("amber", "412", "Ana", "finance"))


def test_two_people_see_their_own_and_nothing_stays_after_the_sign_out(
    visits: Any, provider: OpenIdProvider, postgres: EmbeddedServer
) -> None:
    with service_with(postgres, **provider.settings, oidc_label="Example ID") as service:
        with service.client(service.admin) as client:
            for group, text in SECRETS.items():
                body = {"name": group, "kind": "global", "shared": False}
                corpus = client.post("/api/v1/corpora", json=body).raise_for_status().json()
                at = f"/api/v1/corpora/{corpus['id']}"
                client.patch(at, json={"groups": [group]}).raise_for_status()
                upload = client.post(f"{at}/documents", json={"text": text, "title": group}).raise_for_status().json()
                client.get(f"/api/v1/uploads/{upload['uploadId']}/events").raise_for_status()  # ends when it is indexed
        ana, bea = visits(service, "#documents"), visits(service)
        for address, words in (
            ("/?sign_in=unavailable", "The sign-in service cannot be reached"),
            ("/auth/callback?state=made-up.0000&code=made-up", "The sign-in was not completed"),
        ):
            bea.page.goto(address)
            bea.page.wait_for_selector(f"#sign-in-messages >> text={words}")
        expect(bea.page).not_to_have_url(re.compile("sign_in"))
        expect(ana.page.locator("#to-provider")).to_have_text("Sign in with Example ID", use_inner_text=True)
        through(ana, "ana")
        through(bea, "bea")
        expect(ana.page, "the visitor comes back to the same place").to_have_url(re.compile("/#documents$"))
        expect(bea.page.locator("#user-name")).to_have_text("<img src=x onerror=alert(1)>gnik", use_inner_text=True)
        for one, own, other in ((ana, "finance", "legal"), (bea, "legal", "finance")):
            documents(one)
            assert one.page.locator("#corpus option").all_inner_texts()[-1] == f"{own} · global"
            assert SECRETS[own][-20:] in ask(one, QUESTION)
            manage(one, "corpora")
            expect(one.page.locator("#manage-list .row")).to_have_count(1)
            one.page.click("nav a[data-to=conversations]")
            one.page.wait_for_selector(".row >> text=stones")
            assert other not in text_of(one).replace("readable", "")
        _hostile_claims_stay_text(visits(service), service)
        _session_that_ends_midway(ana, service)
        _sign_out_in_all_tabs(ana, service)
        assert ask(bea, QUESTION), "somebody else's session lives on"
        with psycopg.connect(service.owner_conninfo, autocommit=True) as connection:
            connection.execute("UPDATE rag.users SET active = false WHERE subject = 'ana'")
        through(ana, "ana", until="#sign-in-messages >> text=Ask an administrator for access")
        assert signed_out(ana)


def _hostile_claims_stay_text(boss: Visit, service: RealService) -> None:
    boss.page.click("summary >> text=Use an API key")
    boss.page.fill("#credential", service.admin.key)
    boss.page.press("#credential", "Enter")
    boss.page.wait_for_selector("#account:not([hidden])")
    manage(boss, "users")
    shown = row(boss, "gnik").inner_text()
    assert "<img src=x onerror=alert(1)>gnik" in shown and "<script>alert(2)</script>" in shown
    assert "nimda" not in shown, "a group that hides what it is called is none"
    assert not any(mark in shown for mark in "\u202e\u2066")
    press(boss, "gnik", "Edit")
    boss.page.wait_for_selector(".dialog >> text=<img src=x onerror=alert(1)>gnik")


def end_session(service: RealService) -> None:
    with psycopg.connect(service.owner_conninfo, autocommit=True) as connection:
        connection.execute("DELETE FROM rag.sessions s USING rag.users u WHERE u.id = s.user_id AND subject = 'ana'")


def _session_that_ends_midway(ana: Visit, service: RealService) -> None:
    def end(response: Any) -> None:
        if response.url.endswith("/stream"):
            end_session(service)

    ana.page.on("response", end)
    assert "412" in ask(ana, QUESTION), "an answer that was begun is finished"
    ana.page.remove_listener("response", end)
    ana.page.fill("#question", "And next year?")
    ana.page.press("#question", "Enter")
    ana.page.wait_for_selector("#sign-in-messages >> text=Your session has ended")
    through(ana, "ana")
    ana.page.wait_for_selector("#question")
    expect(ana.page.locator("body"), "it is the same user's").to_contain_text("412", use_inner_text=True)
    expect(ana.page.locator("#question")).to_have_value("And next year?")

    waiting: list[Any] = []
    ana.page.route("**/answer/stream", lambda route: waiting.append(route))
    ana.page.press("#question", "Enter")
    ana.page.wait_for_selector(".answer.is-busy")
    end_session(service)
    ana.page.click("nav a[data-to=documents]")
    ana.page.wait_for_selector("#sign-in-messages >> text=Your session has ended")
    ana.page.unroute("**/answer/stream")
    through(ana, "ana")  # leaves the page, and with it the answer that was on its way
    documents(ana)
    ana.page.click("nav a[data-to=ask]")
    ana.page.wait_for_selector("#question")
    expect(ana.page.locator("#question")).to_have_value("And next year?")
    expect(ana.page.locator("body")).to_contain_text("412", use_inner_text=True)


def _sign_out_in_all_tabs(ana: Visit, service: RealService) -> None:
    tab = watch_page(ana.page.context.new_page(), ana.client, service.url)
    tab.page.goto("/#manage/corpora")
    tab.page.wait_for_selector("#manage-list .row >> text=finance")
    ana.page.click("#sign-out")
    assert signed_out(ana)
    assert signed_out(tab)
    for one in (ana, tab):
        one.page.go_back()
        one.page.goto(f"{service.url}/#conversations")
        assert signed_out(one)
    assert [one["name"] for one in ana.page.context.cookies() if "rag_" in one["name"]] == []
    assert tab.errors == []


def test_invited_user_chooses_a_password_and_is_told_what_is_wrong(visits: Any, postgres: EmbeddedServer) -> None:
    with service_with(postgres) as service:
        boss, axe = visits(service, bypass_csp=True), find_axe()
        assert axe is None or serious_findings(boss.page, axe) == []
        boss.page.click("summary >> text=Use an API key")
        boss.page.fill("#credential", service.admin.key)
        boss.page.press("#credential", "Enter")
        boss.page.wait_for_selector("#account:not([hidden])")
        manage(boss, "users")
        boss.page.click("text=New user")
        fill(boss, Name="gil")
        link = boss.page.locator("input.secret").input_value()
        gil = visits(service, link.removeprefix(f"{service.url}/"), bypass_csp=True)
        expect(gil.page).not_to_have_url(re.compile("invitation"))
        expect(gil.page.locator("#sign-in-title")).to_have_text("Choose a password", use_inner_text=True)
        expect(gil.page.locator("#sign-in")).to_contain_text("for gil", use_inner_text=True)
        assert "No account yet" not in gil.page.locator("#sign-in").inner_text()
        expect(gil.page.locator("#account-name"), "for password managers").to_have_value("gil")
        assert axe is None or serious_findings(gil.page, axe) == []
        gil.page.fill("#password", "a long enough one")
        gil.page.press("#password", "Enter")
        gil.page.wait_for_selector("#user-name:has-text('gil')")
        gil.page.click("#sign-out")
        gil.page.wait_for_selector("#sign-in[open]")
        for password, then in (
            ("wrong", "#sign-in-messages >> text=Name or password"),
            ("a long enough one", "#account:not([hidden])"),
        ):
            gil.page.fill("#account-name", "gil")
            gil.page.fill("#password", password)
            gil.page.press("#password", "Enter")
            gil.page.wait_for_selector(then)
            if password == "wrong":
                expect(gil.page.locator("#password")).to_be_focused()
        late = visits(service, link.removeprefix(f"{service.url}/"), locale="fr-FR")
        late.page.fill("#password", "another long enough")
        late.page.press("#password", "Enter")
        late.page.wait_for_selector("#sign-in-messages >> text=a déjà servi")
