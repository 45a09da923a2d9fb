"""The inputs that cannot be written by hand: office files, PDFs, archives. Their bytes are the same each time."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Mapping

from tests.golden.make_opendocument import OPENDOCUMENT
from tests.golden.make_other import OTHER
from tests.golden.make_pdf import PDF
from tests.golden.make_sheets import SHEETS
from tests.golden.make_slides import SLIDES
from tests.golden.make_word import WORD
from tests.golden.packages import fixed

MAKERS: Mapping[str, Callable[[], bytes]] = {**WORD, **SHEETS, **SLIDES, **OPENDOCUMENT, **PDF, **OTHER}


def made(name: str) -> bytes:
    """An input's bytes."""
    data = MAKERS[name]()
    return fixed(data) if zipfile.is_zipfile(io.BytesIO(data)) else data
