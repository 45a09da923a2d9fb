"""What people do on the page, in the browser's hands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.integration.web.browser import Visit

MARKED = "#panel mark"
NOTE = "# Leave\n\nEmployees receive 25 days of vacation per calendar year.\n"


TRIES = 20  # of a time: the machine may be busy with other tests for a while


def best_of_several(measure: Callable[[], float], bar: float) -> float:
    """The first measurement within a bar, else the best: what is once that quick is no slower by itself."""
    times: list[float] = []
    while len(times) < TRIES and (not times or times[-1] > bar):
        times.append(measure())
    return min(times)


def documents(one: Visit) -> None:
    one.page.click("nav a[data-to=documents]")
    one.page.wait_for_selector("#documents-list .listing[aria-busy=false]")


def add(one: Visit, *files: Any) -> None:
    """Upload and wait until all are indexed."""
    documents(one)
    done = one.page.locator("#uploads-done .upload")
    last = done.count() + len(files) - 1
    one.page.set_input_files("#files", list(files))
    done.nth(last).wait_for(state="attached")


def manage(one: Visit, name: str) -> None:
    one.page.click("nav a[data-to=manage]")
    one.page.wait_for_selector("#manage-list .listing[aria-busy=false]")
    if name != "corpora":  # the first; opened again, it would be made anew while the test looks
        one.page.click(f"#manage-lists a[data-list={name}]")
    one.page.wait_for_selector(f"#manage-lists a[data-list={name}][aria-current]")
    one.page.wait_for_selector("#manage-list .listing[aria-busy=false]")


def row(one: Visit, text: str) -> Any:
    return one.page.locator("section:not([hidden]) .row", has_text=text)


def press(one: Visit, text: str, action: str) -> None:
    """What can be done with a row, by the name of its button."""
    row(one, text).locator(f"button[title='{action}']").click()


def fill(one: Visit, **values: str) -> None:
    """Fields of the dialog by their labels, then its main button."""
    for label, value in values.items():
        one.page.locator(".dialog").get_by_label(label.replace("_", " "), exact=True).fill(value)
    one.page.click(".dialog button[type=submit]")


def ask(one: Visit, question: str) -> str:
    """The answer's text."""
    if one.page.locator("#question").is_hidden():
        one.page.click("nav a[data-to=ask]")
    before = one.page.locator(".turn").count()
    one.page.fill("#question", question)
    one.page.press("#question", "Enter")
    one.page.wait_for_selector(f".turn:nth-child({before + 1}) .why")
    return str(one.page.locator(".turn").last.locator(".answer-text").inner_text())
