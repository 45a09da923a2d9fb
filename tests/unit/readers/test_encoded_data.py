"""Data in letters, such as pictures in Base64, is no text; it is left out of every text format and reported."""

from __future__ import annotations

import base64
import json
import random

import pytest

from rag_service.errors import DocumentError
from rag_service.readers.common.encoded_data import leave_out_data
from rag_service.readers.parse import parse

NOISE = random.Random(7).randbytes(3_000)  # noqa: S311 - no secret
PICTURE = base64.b64encode(b"\x89PNG\r\n\x1a\n" + NOISE).decode()
OTHER = base64.b64encode(NOISE).decode()
TABLE = "<table><tr><th>item</th><th>price</th></tr><tr><td>pen</td><td>2</td></tr></table>"
ONE_PICTURE = "1 picture was not read."
ONE_BLOCK = "1 block of Base64 data was not read."


def wrapped(data: str, width: int = 76) -> str:
    return "\n".join(data[start : start + width] for start in range(0, len(data), width))


@pytest.mark.parametrize(
    ("source", "left", "warning"),
    [
        (f"a ![chart](data:image/png;base64,{PICTURE}) b", "a ![chart]() b", ONE_PICTURE),
        (f'<img src="data:image/svg+xml;charset=utf-8,%3Csvg%3E{"x" * 90}">', '<img src="">', ONE_PICTURE),
        (f"a\n\n[image1]: <data:image/jpeg;base64,{PICTURE}>\n", "a\n\n[image1]: <>\n", ONE_PICTURE),
        (f"key: {OTHER}\nnext: 1", "key: \nnext: 1", ONE_BLOCK),
        (f"-----BEGIN-----\n{wrapped(OTHER, 64)}\n-----END-----", "-----BEGIN-----\n\n-----END-----", ONE_BLOCK),
        (f"photo: |\n{wrapped(PICTURE)}\nend", "photo: |\n\nend", ONE_PICTURE),
        (f'{{"x": "{PICTURE.replace("/", chr(92) + "/")}"}}', '{"x": ""}', ONE_PICTURE),
    ],
)
def test_data_is_left_out_and_reported(source: str, left: str, warning: str) -> None:
    assert leave_out_data(source) == (left, [warning])


@pytest.mark.parametrize(
    "source",
    [
        "ACGT" * 200,  # a genome
        "\n".join("MKTAYIAKQRQISFVKSHFSRQLEERLGLIEVQAPILSRVGDGTQDNLSGAEKAVQVKV" for _ in range(9)),  # a protein
        "\n".join(f"{number:064x}" for number in range(1, 9)),  # checksums
        "https://example.com/" + "a-long-path/" * 40,
        "word " * 500,
        "-" * 300,
        "_".join(["a_very_long_identifier"] * 20),
        "The token sk-1234567890abcdefABCDEF1234567890abcdefABCDEF1234567890abc is revoked.",
        "data: 12, 13",
    ],
)
def test_text_that_only_looks_like_data_is_kept(source: str) -> None:
    assert leave_out_data(source) == (source, [])


@pytest.mark.parametrize("name", ["a.md", "a.txt", "a.json", "a.yaml", "a.csv", "a.xml"])
def test_every_text_format_leaves_data_out(name: str) -> None:
    shapes = {
        "a.json": json.dumps({"name": "Logo", "data": PICTURE}),
        "a.csv": f"name,data\nLogo,{PICTURE}\n",
        "a.xml": f"<item><name>Logo</name><data>{wrapped(PICTURE)}</data></item>",
    }
    document = parse(shapes.get(name, f"name: Logo\ndata: {PICTURE}\n").encode(), file_name=name)
    assert "Logo" in document.text
    assert len(document.text) < 100
    assert document.warnings == (ONE_PICTURE,)


def test_a_notebook_is_read_cell_by_cell() -> None:
    cells = [
        {"cell_type": "markdown", "source": ["# Churn\n", "The rate was 4.2 %. ![a](attachment:a.png)"]},
        {"cell_type": "code", "source": "fit(X)", "outputs": [
            {"output_type": "stream", "name": "stdout", "text": ["accuracy 0.91\n"]},
            {"output_type": "display_data", "data": {"image/png": PICTURE, "text/plain": "<Figure>"}},
            {"output_type": "error", "ename": "ValueError", "evalue": "bad", "traceback": ["\x1b[31mlong\x1b[0m"]},
        ]},
        {"cell_type": "code", "source": "df", "outputs": [
            {"output_type": "execute_result", "data": {"text/html": TABLE}},
        ]},
        {"cell_type": "raw", "source": "as is"},
    ]  # fmt: skip
    notebook = {"nbformat": 4, "metadata": {"language_info": {"name": "python"}}, "cells": cells}
    document = parse(json.dumps(notebook).encode(), file_name="study.ipynb")
    assert document.title == "Churn"
    assert document.media_type == "application/x-ipynb+json"
    assert document.warnings == ("2 pictures were not read.",)
    for part in (
        "The rate was 4.2 %.",
        "```python\nfit(X)\n```",
        "accuracy 0.91",
        "ValueError: bad",
        "item: pen | price: 2",
        "as is",
    ):
        assert part in document.text
    for part in ("cell_type", "iVBOR", "\x1b", "traceback", "attachment:"):
        assert part not in document.text
    assert {span.location.headings for span in document.spans} == {("Churn",)}


def test_a_notebook_of_version_3_is_read() -> None:
    cells = [
        {"cell_type": "heading", "level": 2, "source": ["Data"]},
        {"cell_type": "code", "input": ["1 + 1"], "outputs": [{"output_type": "pyout", "text": ["2"], "png": PICTURE}]},
    ]
    document = parse(json.dumps({"nbformat": 3, "worksheets": [{"cells": cells}]}).encode(), file_name="old.ipynb")
    assert document.text.split() == ["##", "Data", "```", "1", "+", "1", "```", "```", "2", "```"]
    assert document.warnings == (ONE_PICTURE,)


@pytest.mark.parametrize("source", ["[]", "{}", '{"cells": 3}', "no json", '{"worksheets": [1]}'])
def test_what_is_no_notebook_is_refused(source: str) -> None:
    with pytest.raises(DocumentError):
        parse(source.encode(), file_name="a.ipynb")
