"""Saved runs hold numbers only, compare in pairs, and draw."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from rag_service.errors import ConfigurationError, EvalSetError, InputError
from rag_service.evaluation.metrics import Measured
from rag_service.evaluation.report import plot_runs, write_plot
from rag_service.evaluation.saved import SavedRun, SavedSet, compare_runs, read_run, save_run


def run_of(
    name: str,
    values: list[float | None],
    *,
    questions: str = "q",
    name_of_set: str = "xquad",
    passage_format: str = "",
) -> SavedRun:
    return SavedRun(
        name=name,
        sets=(
            SavedSet(
                set=name_of_set,
                questions=questions,
                passage_format=passage_format,
                measures={"RR": Measured(values=tuple(values))},
            ),
        ),
    )


def test_a_clear_gain_is_significant_and_chance_is_not() -> None:
    generator = np.random.default_rng(1)
    before = generator.uniform(0, 0.8, 300)
    better = run_of("better", list(before + 0.1))
    same = run_of("same", list(before + generator.normal(0, 0.1, 300)))
    [gain] = compare_runs(run_of("before", list(before)), better)
    assert gain.difference == pytest.approx(0.1)
    assert gain.p_value < 0.001
    assert gain.low <= gain.difference <= gain.high
    [chance] = compare_runs(run_of("before", list(before)), same)
    assert chance.p_value > 0.05
    assert chance.low < 0 < chance.high


def test_equal_runs_differ_by_nothing() -> None:
    [row] = compare_runs(run_of("a", [1.0, 0.5, None]), run_of("b", [1.0, 0.5, None]))
    assert (row.difference, row.p_value, row.questions) == (0, 1, 2)


def test_only_what_can_be_paired_is_compared() -> None:
    with pytest.raises(EvalSetError, match="no set in common"):
        compare_runs(run_of("a", [1.0]), run_of("b", [1.0], name_of_set="other"))
    with pytest.raises(EvalSetError, match="questions differ"):
        compare_runs(run_of("a", [1.0]), run_of("b", [1.0], questions="other"))
    with pytest.raises(EvalSetError, match="'text alone' in a and 'title and text' in b"):
        compare_runs(run_of("a", [1.0]), run_of("b", [1.0], passage_format="title and text"))


def test_a_saved_run_is_read_back_by_name(tmp_path: Path) -> None:
    described = {
        "name": "first",
        "sets": [
            {"set": "s", "questions_sha256": "h", "per_question": {"RR": {"values": [1.0, None], "weights": [2, 0]}}}
        ],
    }
    assert save_run(described, folder=tmp_path) == tmp_path / "first.json"
    read = read_run("first", folder=tmp_path)
    assert read.sets[0].measures["RR"] == Measured(values=(1.0, None), weights=(2, 0))
    with pytest.raises(EvalSetError, match="saved runs: first"):
        read_run("second", folder=tmp_path)
    (tmp_path / "broken.json").write_text("{}")
    with pytest.raises(EvalSetError, match="is not a saved run"):
        read_run("broken", folder=tmp_path)


@pytest.mark.parametrize("name", ["../up", "", "a/b", "a b", ".hidden"])
def test_a_name_that_is_no_plain_file_name_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError):
        save_run({"name": name, "sets": []}, folder=tmp_path)


def test_the_plot_has_a_bar_for_each_run_and_measure(tmp_path: Path) -> None:
    figure = plot_runs([run_of("first", [0.5, 1.0]), run_of("second & last", [1.0, 1.0])])
    [axes] = figure.axes
    assert [patch.get_height() for patch in axes.patches] == [0.75, 1.0]  # type: ignore[attr-defined]  # rectangles
    for name in ("plot.svg", "plot.png"):
        write_plot(figure, tmp_path / name)
        assert (tmp_path / name).stat().st_size > 1_000
    with pytest.raises(InputError, match=r"\.svg"):
        write_plot(figure, tmp_path / "plot.bmp")
    with pytest.raises(InputError, match="cannot be written"):
        write_plot(figure, tmp_path / "missing" / "plot.svg")


def test_without_matplotlib_a_plot_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ConfigurationError, match=r"rag-service\[plot\]"):
        plot_runs([run_of("a", [1.0])])


def test_a_plot_of_nothing_in_common_is_refused() -> None:
    with pytest.raises(EvalSetError, match="nothing to plot"):
        plot_runs([run_of("a", [1.0]), run_of("b", [1.0], name_of_set="other")])
    with pytest.raises(InputError):
        plot_runs([])
