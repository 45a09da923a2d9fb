"""A real headless Chromium, and a page in it that notices what must not happen."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from tests.integration.web.conftest import ServePage
from tests.integration.web.scenes import Scene

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

WIDE, PHONE, NARROWEST = (1280, 860), (390, 800), (320, 640)
WAIT_SECONDS = 60  # for whatever a test waits for; the machine may be slow and busy
_NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")  # the first takes least time
# Chromium's address bar is a page of its own, which takes half of its processor time. Of two such lists only the last
# one holds, so the first lines are from Playwright's.
_LEFT_OUT = (
    "AvoidUnnecessaryBeforeUnloadCheckSync,DestroyProfileOnBrowserClose,HttpsFirstBalancedModeAutoEnable,HttpsUpgrades,"
    "LensOverlay,MediaRouter,NetworkTimeServiceQuerying,OptimizationHints,PaintHolding,ThirdPartyStoragePartitioning,"
    "AimEnabled,WebUIOmniboxAimPopup,WebUIOmniboxFullPopup,WebUIOmniboxPopup"
)
ARGUMENTS = ("--no-sandbox", f"--disable-features={_LEFT_OUT}")  # root in containers has no sandbox


def find_chromium() -> str | None:
    """CHROMIUM_PATH, else a Chromium on the PATH."""
    named = os.environ.get("CHROMIUM_PATH")
    return named or next((path for name in _NAMES if (path := shutil.which(name))), None)


def find_axe() -> Path | None:
    """axe.min.js, by AXE_PATH: the file itself, or the folder in which `npm install axe-core` was run."""
    named = Path(os.environ.get("AXE_PATH", "/nowhere"))
    return next((path for path in (named, named / "node_modules/axe-core/axe.min.js") if path.is_file()), None)


def expect(what: Locator | Page, message: str | None = None) -> Any:
    """Playwright's assertions, which wait: the page may still be about to become what it is expected to be."""
    from playwright.sync_api import expect  # may be missing; then there is no browser either

    expect.set_options(timeout=WAIT_SECONDS * 1000)
    return expect(what, message)


def comes_true(page: Page, holds: Callable[[], Any]) -> bool:
    """Whether something that no assertion of Playwright's tells comes to hold; the page goes on meanwhile."""
    end = time.monotonic() + WAIT_SECONDS
    while not holds() and time.monotonic() < end:
        page.wait_for_timeout(20)
    return bool(holds())


AT_REST = """() => {
    const isEndless = (one) => one.effect.getComputedTiming().endTime === Infinity;
    const isBusy = [...document.querySelectorAll("[aria-busy=true]")].some((one) => one.checkVisibility());
    return !isBusy && document.getAnimations().every(isEndless);
}"""


def serious_findings(page: Page, axe: Path) -> list[tuple[str, str]]:
    """What axe-core finds: (rule, first element), once the page is at rest: a list that is fetched anew is pale."""
    page.wait_for_function(AT_REST)
    page.evaluate(axe.read_text(encoding="utf-8"))
    # Tabs of a strip that is scrolled to the side are taken for skip links.
    options = "{ resultTypes: ['violations'], rules: { 'skip-link': { enabled: false } } }"
    found = page.evaluate(f"axe.run(document, {options})")["violations"]
    return [(one["id"], one["nodes"][0]["html"]) for one in found]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One browser for a module."""
    playwright = pytest.importorskip("playwright.sync_api", reason="the Python package playwright is not installed")
    path = find_chromium()
    if path is None:
        pytest.skip("no Chromium found: install it (apt-get install chromium) or set CHROMIUM_PATH")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield browser
        browser.close()


@dataclass
class Visit:
    """A page that has been opened, and everything suspicious that it did."""

    page: Page
    client: httpx.Client  # of the same server
    errors: list[str] = field(default_factory=list)  # uncaught errors and CSP violations
    foreign: list[str] = field(default_factory=list)  # requests to other hosts

    def ask(self, question: str, *, until: str = ".why") -> None:
        """Ask by keyboard and wait for what comes."""
        self.page.fill("#question", question)
        self.page.press("#question", "Enter")
        self.page.wait_for_selector(f".turn:last-child {until}")

    def badge(self, number: int) -> Any:
        return self.page.locator(".turn:last-child .badge").nth(number)


Open = Callable[..., Visit]


@pytest.fixture
def visit(browser: Browser, serve_page: ServePage) -> Iterator[Open]:
    """Opens the page of a server of its own; whatever the test does, it fails on errors and foreign requests."""
    visits: list[Visit] = []

    def start(
        scene: Scene | None = None,
        *,
        size: tuple[int, int] = WIDE,
        settings: dict[str, Any] | None = None,
        **context: Any,
    ) -> Visit:
        client = serve_page(scene or Scene(), **(settings or {}))
        base = str(client.base_url)
        width, height = size
        opened = browser.new_context(
            base_url=base, viewport={"width": width, "height": height}, **{"locale": "en-US", **context}
        )
        seen = watch_page(opened.new_page(), client, base)
        visits.append(seen)
        seen.page.goto("/")
        seen.page.wait_for_selector("html.is-started")
        return seen

    yield start
    for one in visits:
        one.page.context.close()
    for one in visits:
        assert (one.errors, one.foreign) == ([], [])


def watch_page(page: Page, client: httpx.Client, base: str) -> Visit:
    """A page whose errors, violations, dialogs and requests to other hosts are noted."""
    page.set_default_timeout(WAIT_SECONDS * 1000)
    seen = Visit(page, client)
    page.on("pageerror", lambda error: seen.errors.append(str(error)))
    page.on("console", lambda line: _is_violation(line.text) and seen.errors.append(line.text))
    page.on(
        "request", lambda request: request.url.startswith((base, f"blob:{base}")) or seen.foreign.append(request.url)
    )
    page.on("dialog", lambda dialog: seen.errors.append(f"dialog: {dialog.message}") or dialog.dismiss())
    return seen


def _is_violation(line: str) -> bool:
    return "Content Security Policy" in line or "TrustedHTML" in line
