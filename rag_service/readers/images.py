"""Images of text (PNG, JPEG, TIFF, WebP), read by text recognition."""

from __future__ import annotations

import io

from rag_service.domain import ParsedDocument
from rag_service.errors import DocumentError, TooLargeError, UnsupportedMediaError
from rag_service.readers.common.builder import TextBuilder
from rag_service.readers.common.names import choose_title
from rag_service.readers.ocr.recognition import HOW_TO_INSTALL, MAX_PAGES, may_recognise

_MAX_PIXELS = 100_000_000  # of a page; A3 at 600 dots per inch has 70 million
_MAX_SIDE = 3_000  # pixels


def parse_image(data: bytes, *, name: str) -> ParsedDocument:
    """Recognise the text of an image; each page of a TIFF file is a page.

    Raises:
        UnsupportedMediaError: without the extra `ocr`.
        DocumentError: damaged, or no text in it. TooLargeError: too many pixels.
    """
    if not may_recognise():
        raise UnsupportedMediaError(
            f'"{name}" is an image. {HOW_TO_INSTALL} Or recognise its text elsewhere and upload the result as a PDF.'
        )
    import numpy
    from PIL import Image, ImageOps, ImageSequence

    from rag_service.readers.pdf.reader import lines_of, write_pages
    from rag_service.readers.pdf.scans import read_scan, warn_of

    Image.MAX_IMAGE_PIXELS = None  # we check before anything is decoded
    builder = TextBuilder(name)
    try:
        image = Image.open(io.BytesIO(data), formats=("PNG", "JPEG", "TIFF", "WEBP"))
        frames = ImageSequence.Iterator(image)
    except (OSError, SyntaxError, ValueError) as error:
        raise DocumentError(f'"{name}" is damaged or incomplete. Save the image again and upload that.') from error
    pages = []
    for number, frame in enumerate(frames, start=1):
        if number > MAX_PAGES:
            builder.warn(f"Only the first {MAX_PAGES} pages were read.")
            break
        if frame.width * frame.height > _MAX_PIXELS:
            raise TooLargeError(
                f'"{name}" has {frame.width:,} × {frame.height:,} pixels. Save it with fewer than 100 million.'
            )
        try:
            page = ImageOps.exif_transpose(frame).convert("RGB")
        except (OSError, SyntaxError, ValueError) as error:
            raise DocumentError(f'"{name}" is damaged or incomplete. Save the image again and upload that.') from error
        page.thumbnail((_MAX_SIDE, _MAX_SIDE))
        scan = read_scan(numpy.asarray(page)[:, :, ::-1])
        pages.append(lines_of(scan))
        if scan.unsure:
            builder.warn(warn_of(scan.unsure, number if number > 1 else None))
    write_pages(builder, pages, [()] * len(pages))
    return builder.build(title=choose_title(name), media_type=_media_type(data), metadata={"recognised": True})


def _media_type(data: bytes) -> str:
    if data.startswith(b"\x89PNG"):
        return "image/png"
    if data.startswith(b"RIFF"):
        return "image/webp"
    return "image/jpeg" if data.startswith(b"\xff\xd8") else "image/tiff"
