"""What people do on the page, in the browser's hands."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from tests.integration.web.browser import Visit

MARKED = "#panel mark"
NOTE = "# Leave\n\nEmployees receive 25 days of vacation per calendar year.\n"


TURNS = re.compile(
    "[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)  # the direction of what follows; the page leaves them out
TRIES = 20  # of a time: the machine may be busy with other tests for a while


def best_of_several(measure: Callable[[], float], bar: float) -> float:
    """The first measurement within a bar, else the best: what is once that quick is no slower by itself."""
    times: list[float] = []
    while len(times) < TRIES and (not times or times[-1] > bar):
        times.append(measure())
    return min(times)


def opened(one: Visit, part: str) -> None:
    """Wait until a part of the page is there, and what was fetched for it: until then, what was there before stands."""
    one.page.wait_for_selector(f"section[data-view={part}][aria-busy=false]")


def is_in_sight(page: Any, selector: str) -> bool:
    """Whether the first such element lies wholly inside the window."""
    box, size = page.locator(selector).first.bounding_box(), page.viewport_size
    return bool(
        box and 0 <= box["x"] <= size["width"] - box["width"] and 0 <= box["y"] <= size["height"] - box["height"]
    )


def documents(one: Visit) -> None:
    one.page.click("nav a[data-to=documents]")
    opened(one, "documents")


def add(one: Visit, *files: Any) -> None:
    """Upload and wait until all are indexed, and listed as that: until then, the list is about to be fetched anew."""
    documents(one)
    done = one.page.locator("#uploads-done .upload")
    last = done.count() + len(files) - 1
    one.page.set_input_files("#files", list(files))
    done.nth(last).wait_for(state="attached")
    for file in files:
        listed = row(one, TURNS.sub("", file["name"])).filter(has=one.page.locator(".row-state:empty"))
        listed.first.wait_for(state="attached")


def manage(one: Visit, name: str) -> None:
    one.page.click("nav a[data-to=manage]")
    one.page.wait_for_selector("#manage-lists a[data-list=corpora][aria-current]")
    if name != "corpora":  # the first; opened again, it would be made anew while the test looks
        one.page.click(f"#manage-lists a[data-list={name}]")
        one.page.wait_for_selector(f"#manage-lists a[data-list={name}][aria-current]")
    opened(one, "manage")


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
    opened(one, "ask")
    before = one.page.locator(".turn").count()
    one.page.fill("#question", question)
    one.page.press("#question", "Enter")
    one.page.wait_for_selector(f".turn:nth-child({before + 1}) .why")
    return str(one.page.locator(".turn").last.locator(".answer-text").inner_text())
