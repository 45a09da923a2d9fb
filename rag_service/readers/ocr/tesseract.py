"""Text recognition by the library of Tesseract, where it is installed on the machine, with its language data.

It is loaded into this process and not started as a program: the sandbox allows no further processes.
"""

from __future__ import annotations

import csv
import ctypes
import os
from functools import cache
from pathlib import Path
from typing import Any

from rag_service.errors import DocumentError
from rag_service.readers.ocr.lines import ReadLine

_LIBRARIES = (
    "usr/lib/*/libtesseract.so.[45]",  # Debian and Ubuntu
    "usr/lib64/libtesseract.so.[45]",  # Fedora
    "usr/lib/libtesseract.so.[45]",  # Alpine and Arch
    "usr/local/lib/libtesseract.*",
    "opt/homebrew/lib/libtesseract.*.dylib",
)
_LANGUAGES = b"eng+spa+fra+por"  # those without data are left out
_DOTS_PER_INCH = 200
_WORD = "5"  # the level of a word in the table of results


@cache
def find_library() -> str | None:
    """The file of Tesseract's library. It is not loaded."""
    return next((str(file) for pattern in _LIBRARIES for file in sorted(Path("/").glob(pattern), reverse=True)), None)


def recognise(image: Any) -> list[ReadLine]:
    """Lines of an image (a numpy array of height, width, three colours), in the order of reading.

    Raises DocumentError if there is no data of any of our languages.
    """
    library, handle = _engine()
    height, width = image.shape[:2]
    grey = image.mean(axis=2).astype("uint8").tobytes()
    library.TessBaseAPISetImage(handle, grey, width, height, 1, width)
    library.TessBaseAPISetSourceResolution(handle, _DOTS_PER_INCH)
    found = library.TessBaseAPIGetTsvText(handle, 0)
    try:
        table = ctypes.string_at(found).decode() if found else ""
    finally:
        library.TessDeleteText(ctypes.c_void_p(found))
    lines: dict[tuple[str, ...], list[list[str]]] = {}
    for row in csv.reader(table.splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE):
        if row[0] == _WORD and row[11].strip():
            lines.setdefault(tuple(row[2:5]), []).append(row)  # block, paragraph, line
    return [_line(words) for words in lines.values()]


def _line(words: list[list[str]]) -> ReadLine:
    boxes = [tuple(map(float, word[6:10])) for word in words]  # left, top, width, height
    return ReadLine(
        " ".join(word[11].strip() for word in words),
        sum(max(0.0, float(word[10])) for word in words) / len(words) / 100,
        min(left for left, _, _, _ in boxes),
        max(left + width for left, _, width, _ in boxes),
        min(top for _, top, _, _ in boxes),
        max(top + height for _, top, _, height in boxes),
    )


@cache
def _engine() -> tuple[Any, ctypes.c_void_p]:
    os.environ["OMP_THREAD_LIMIT"] = "1"  # the sandbox allows no threads
    library = ctypes.CDLL(find_library())
    library.TessBaseAPICreate.restype = ctypes.c_void_p
    library.TessBaseAPIGetTsvText.restype = ctypes.c_void_p
    handle = ctypes.c_void_p(library.TessBaseAPICreate())
    library.TessBaseAPISetVariable(handle, b"debug_file", b"/dev/null")
    if library.TessBaseAPIInit3(handle, None, _LANGUAGES) != 0:
        raise DocumentError(
            "Tesseract has no language data. Install it (for example the package tesseract-ocr-eng), or the extra "
            "`ocr`: pip install 'rag-service[ocr]'."
        )
    return library, handle
