"""Names of columns over several lines, above figures without rules, are read whole."""

from __future__ import annotations

from tests.unit.readers.test_pdf_empty_cells import lines_at

FIGURES = {
    80 + 5 * line: {15: name, 50: f"1.{line}", 80: f"2.{line}", 110: f"3.{line}", 140: f"4.{line}"}
    for line, name in enumerate(("Quay", "Mole", "Pier"))
}


def test_the_lines_of_a_name_are_read_together() -> None:
    names = {65: {15: "Place", 50: "Depth", 80: "Width", 110: "Load"}, 69: {15: "of work", 50: "(m)", 80: "of the"}}
    names |= {73: {80: "gate", 110: "(t)", 140: "Crew"}}
    assert lines_at(names | FIGURES) == [
        "Place of work  Depth (m)  Width of the gate  Load (t)  Crew",
        "Quay  1.0  2.0  3.0  4.0",
        "Mole  1.1  2.1  3.1  4.1",
        "Pier  1.2  2.2  3.2  4.2",
    ]


def test_a_name_in_the_middle_above_two_columns_is_part_of_both() -> None:
    names = {68: {62: "Low water", 121: "High water"}, 73: {15: "Place", 50: "Depth", 80: "Width"}}
    names[73] |= {110: "Depth", 140: "Width"}
    assert lines_at(names | FIGURES)[0] == (
        "Place  Low water Depth  Low water Width  High water Depth  High water Width"
    )


def test_titles_and_names_that_stand_above_no_one_column_stay_lines_of_their_own() -> None:
    heads = {60: {15: "Harbour", 45: "All measures of the survey in metres and tonnes", 140: "(2025)"}}
    heads |= {68: {60: "Low water", 128: "High"}, 73: {50: "Depth", 80: "Width"}}
    assert lines_at(heads | FIGURES)[:3] == [
        "Harbour  All measures of the survey in metres and tonnes  (2025)",
        "Low water  High",
        "Depth  Width",
    ]
