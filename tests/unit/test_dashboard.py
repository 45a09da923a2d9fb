"""The dashboard shows what the service counts: all of it, and nothing else."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import Counter, Gauge, Histogram

import rag_service
from rag_service.observability.metrics import DOCUMENTED, Metrics

FILE = Path(rag_service.__file__).parent / "observability" / "dashboards" / "grafana.json"
DASHBOARD = json.loads(FILE.read_text(encoding="utf-8"))
PANELS: list[dict[str, Any]] = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
EXPRESSIONS = [target["expr"] for panel in PANELS for target in panel["targets"]]
PARTS_OF_HISTOGRAMS = ("_bucket", "_sum", "_count")


FIGURE = re.compile(r"\brag_\w+\b(?!\s*!?=)")  # not the label rag_used


def base_name(name: str) -> str:
    for part in PARTS_OF_HISTOGRAMS:
        if name.removesuffix(part) in DOCUMENTED:
            return name.removesuffix(part)
    return name


def labels() -> dict[str, set[str]]:
    """Label names by figure."""
    held = vars(Metrics()).values()
    together = [figure for value in held if isinstance(value, dict) for figure in value.values()]
    figures = [value for value in (*held, *together) if isinstance(value, Counter | Gauge | Histogram)]
    return {
        figure._name + ("_total" if isinstance(figure, Counter) else ""): {*figure._labelnames, "le"}
        for figure in figures
    }


def test_every_figure_is_shown_and_no_unknown_one() -> None:
    shown = {base_name(name) for expression in EXPRESSIONS for name in FIGURE.findall(expression)}
    assert shown == set(DOCUMENTED)


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_it_asks_only_for_labels_that_exist(expression: str) -> None:
    known = labels()
    names = {base_name(name) for name in FIGURE.findall(expression)}
    asked = set(re.findall(r"(\w+)\s*(?:!=|=~|!~|=)\s*\"", expression))
    asked |= {label.strip() for group in re.findall(r"by \(([^)]*)\)", expression) for label in group.split(",")}
    for name in names:
        assert asked <= known[name], name
    assert expression.count("(") == expression.count(")")
    assert expression.count("{") == expression.count("}")


def test_panels_have_titles_places_and_ids_of_their_own() -> None:
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
    assert len({panel["title"] for panel in PANELS}) == len(PANELS)
    places = [panel["gridPos"] for panel in DASHBOARD["panels"]]
    taken = [
        (x, y)
        for place in places
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(taken) == len(set(taken))
    assert all(place["x"] + place["w"] <= 24 for place in places)
