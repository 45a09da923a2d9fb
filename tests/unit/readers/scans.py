"""Pages of text as pictures."""

from __future__ import annotations

import io
from typing import Any

import numpy
import pypdfium2
from fpdf import FPDF
from PIL import Image, ImageFilter


def page_image(text: str, *, dpi: int = 150, y: float = 10, share: float = 1 / 3) -> Image.Image:
    """The upper share of a page of A4 with a text, which begins `y` millimetres from the top."""
    file = FPDF()
    file.add_page()
    file.set_y(y)
    file.set_font("Helvetica", size=11)
    file.multi_cell(0, 6, text)
    page = pypdfium2.PdfDocument(bytes(file.output()))[0]
    image: Image.Image = page.render(scale=dpi / 72).to_pil().convert("L")
    return image.crop((0, 0, image.width, int(image.height * share)))


def scanned(page: Image.Image) -> Image.Image:
    """A page as a scanner gives it: skew, grain, a little blur."""
    image = page.rotate(0.7, fillcolor=255, resample=Image.Resampling.BICUBIC)
    grain = numpy.random.default_rng(7).normal(0, 18, (image.height, image.width))
    noisy = numpy.clip(numpy.asarray(image, dtype=float) * 0.92 + grain, 0, 255).astype("uint8")
    return Image.fromarray(noisy).filter(ImageFilter.GaussianBlur(0.5))


def saved(image: Image.Image, format: str, **options: Any) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, format, **options)
    return buffer.getvalue()
