"""Text recognition (OCR) by RapidOCR, the extra `ocr`: PP-OCR models inside the package, Latin letters with accents.

Without the extra, Tesseract takes its place where it is installed on the machine.
Recognition needs numpy, ONNX Runtime, over a gigabyte of memory and about eight seconds of processor time a page. So
readers do not start it: they raise `NeedsOcrError`, and the sandbox reads the file again in a process with more room.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from enum import Enum
from functools import cache
from typing import Any

from rag_service.readers.ocr import tesseract
from rag_service.readers.ocr.lines import ReadLine

MAX_PAGES = 100  # recognised in one file
LOW_SCORE = 0.9  # of a line; lines of clean scans have 0.94 and more (`tests/integration/test_ocr.py`)
WORTHLESS_SCORE = 0.5  # of a line; below it, the text is left out
HOW_TO_INSTALL = (
    "To read scanned pages and images, install the extra `ocr`: pip install 'rag-service[ocr]', or Tesseract."
)
_MIN_SIDE = 8  # pixels of an image: what is narrower is a line, or too small to read
_MAX_RATIO = 60  # of the sides of an image


class OcrMode(Enum):
    OFF = "off"  # pages without text stay without
    ASK = "ask"  # raise NeedsOcrError where it would help and is installed
    ON = "on"


_mode: ContextVar[OcrMode] = ContextVar("ocr_mode", default=OcrMode.OFF)


class NeedsOcrError(Exception):
    """The file has pages that only text recognition can read."""


@contextmanager
def ocr_mode(mode: OcrMode) -> Iterator[None]:
    """What readers do with scanned pages in this context."""
    token = _mode.set(mode)
    try:
        yield
    finally:
        _mode.reset(token)


def may_recognise() -> bool:
    """Whether this process recognises text. Raises NeedsOcrError if another one should."""
    if _mode.get() is OcrMode.ASK and is_installed():
        raise NeedsOcrError
    return _mode.get() is OcrMode.ON


def is_installed() -> bool:
    """Whether the extra or Tesseract is there; loads nothing."""
    return _has_extra() or tesseract.find_library() is not None


def recognise(image: Any) -> list[ReadLine]:
    """Lines of an image (a numpy array of height, width, three colours), in no order. About eight seconds."""
    if min(image.shape[:2]) < _MIN_SIDE:
        return []
    return _recognise(image) if _has_extra() else tesseract.recognise(image)


def _has_extra() -> bool:
    return all(importlib.util.find_spec(module) is not None for module in ("rapidocr", "onnxruntime"))


def _recognise(image: Any) -> list[ReadLine]:
    found = _engine()(_padded(image))
    if found.boxes is None or found.txts is None:
        return []
    lines = []
    for corners, text, score in zip(found.boxes, found.txts, found.scores, strict=True):
        across, down = [float(x) for x, _ in corners], [float(y) for _, y in corners]
        lines.append(ReadLine(text, float(score), min(across), max(across), min(down), max(down)))
    return lines


def _padded(image: Any) -> Any:
    """The image with white below or beside it if it is a strip, which RapidOCR refuses from 1:125 on."""
    import numpy

    height, width = image.shape[:2]
    more = [(0, max(other // _MAX_RATIO - side, 0)) for side, other in ((height, width), (width, height))]
    return numpy.pad(image, [*more, (0, 0)], constant_values=255) if any(after for _, after in more) else image


@cache
def _engine() -> Any:
    import cv2
    from rapidocr import RapidOCR

    cv2.setNumThreads(0)  # the sandbox allows no threads
    options = {
        "Global.log_level": "critical",
        "Global.text_score": 0.0,
        # It turns upright lines over: without it nine words of a hundred more are right, and `scans` turns whole pages.
        "Global.use_cls": False,
        "Rec.rec_batch_num": 1,
        **{f"EngineConfig.onnxruntime.{kind}_op_num_threads": 1 for kind in ("intra", "inter")},
    }
    return RapidOCR(params=options)
