"""What `make soak FILES=folder` prints about the files of a folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.soak.second_opinion import differences, main
from tests.unit.readers import samples


def test_what_only_one_reader_finds_is_named_and_the_way_of_writing_does_not_count() -> None:
    assert list(differences("Fee: 1,200.50 | Año: 2024", "fee 1200.50 ANO 2024")) == []
    assert [line.strip() for line in differences("Fee 05 euros", "Fee 0.05 EUR")] == [
        "figures only in theirs: 005",
        "figures only in ours: 05",
        "words only in theirs: eur",
        "words only in ours: euros",
    ]


def test_each_file_is_compared_with_a_plain_reading_and_refusals_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")  # without pdftotext
    (tmp_path / "a.pdf").write_bytes(samples.pdf("The fee is 120 euros."))
    (tmp_path / "b.xlsx").write_bytes(samples.xlsx([["Item", "Stock"], ["Bolt", 5]]))
    (tmp_path / "c.docx").write_bytes(samples.word("The fee is 120 euros."))
    (tmp_path / "d.html").write_bytes(b"<html><body><p>The fee is 120 euros.</p></body></html>")
    (tmp_path / "e.pdf").write_bytes(b"no PDF")
    main(tmp_path)
    lines = capsys.readouterr().out.splitlines()
    assert lines[:4] == [f"same      {name}" for name in ("a.pdf", "b.xlsx", "c.docx", "d.html")]
    assert lines[4].startswith("refused   e.pdf: ")
    assert lines[5] == "5 files, 4 the same"
