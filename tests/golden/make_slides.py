# ruff: noqa: E501 - lines of files
"""PowerPoint files."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Mapping, Sequence

from tests.golden.packages import strict, with_macros
from tests.unit.readers import office_samples as office
from tests.unit.readers.samples import with_members


def _deck() -> bytes:
    return office.pptx(
        [office.shape("Plan of May", kind="ctrTitle"), office.shape("For all staff", kind="subTitle")],
        [office.shape("Rates", kind="title"), office.shape("Up by two percent", "Hold until May")],
        notes={2: "Ask Ana."},
    )


def _deck_groups() -> bytes:
    def group(*shapes: str) -> str:
        return f"<p:grpSp>{''.join(shapes)}</p:grpSp>"

    footer = office.shape("Lines of the north", kind="ftr")
    return office.pptx(
        [
            office.shape("Budget", kind="title"),
            group(office.shape("Inner"), group(office.shape("Innermost"))),
            office.slide_table(["Item", "2024", "2025"], ["Rent", "100", "120"], ["Total", "100", "120"]),
            office.slide_table(["Prices in euros", "<"], ["Item", "Price"], ["Chair", "40"]),
            footer,
        ],
        [office.shape("Next steps", kind="title"), footer, office.shape("2", kind="sldNum")],
    )


def _deck_chart() -> bytes:
    return office.pptx(
        [office.shape("Trips", kind="title"), office.chart_frame("rIdC")],
        charts={1: office.chart("Trips by year", ["2023", "2024"], {"Madrid": ["412", "398"]})},
    )


def _slide_shapes() -> bytes:
    merged = office.slide_table(["Grade", "Hotel", "<"], ["^", "Madrid", "Paris"], ["B", "160", "190"])
    looks = (
        '<p:sp><p:nvSpPr><p:nvPr/></p:nvSpPr><p:txBody><a:p><a:r><a:t>Notice: </a:t></a:r><a:r><a:rPr strike="sngStrike"/><a:t>six weeks </a:t></a:r>'
        '<a:r><a:t>12 m</a:t></a:r><a:r><a:rPr baseline="30000"/><a:t>2</a:t></a:r></a:p></p:txBody></p:sp>'
    )
    group = f"<p:grpSp>{office.shape('Inside a group')}</p:grpSp>"
    return office.pptx([office.shape("Rooms", kind="title"), merged, looks, group, office.shape("3", kind="sldNum")])


def _pptm() -> bytes:
    return with_macros(_deck(), b"powerpoint.presentation", b"presentationml.presentation.main+xml", "ppt")


def _slides(*slides: tuple[str, Sequence[str]], layout: str = "", master: str = "") -> bytes:
    """Slides of (attributes, shapes), with one layout and one master."""
    deck = office.pptx(*(shapes for _, shapes in slides))
    names = [f"ppt/slides/slide{number}.xml" for number in range(1, len(slides) + 1)]
    with zipfile.ZipFile(io.BytesIO(deck)) as archive:
        pages = [archive.read(name).decode() for name in names]
    changes = {
        name: page.replace("<p:sld ", f"<p:sld {attributes} ", 1)
        for name, page, (attributes, _) in zip(names, pages, slides, strict=True)
    }
    for number in range(1, len(slides) + 1):
        changes[f"ppt/slides/_rels/slide{number}.xml.rels"] = office._relations(
            {"rIdL": ("slideLayout", "../slideLayouts/slideLayout1.xml")}
        )
    for kind, shapes, behind in (
        ("Layout", layout, {"rIdM": ("slideMaster", "../slideMasters/slideMaster1.xml")}),
        ("Master", master, {}),
    ):
        changes[f"ppt/slide{kind}s/slide{kind}1.xml"] = (
            f"<p:sld{kind} {office._ALL}><p:cSld><p:spTree>{shapes}</p:spTree></p:cSld></p:sld{kind}>"
        )
        changes[f"ppt/slide{kind}s/_rels/slide{kind}1.xml.rels"] = office._relations(behind)
    return with_members(deck, {name: content.encode() for name, content in changes.items()})


def _layouts() -> bytes:
    return _slides(
        ("", [office.shape("Fees", kind="title"), office.shape("A single ticket costs 3 euros.")]),
        ('show="0"', [office.shape("Old fees", kind="title"), office.shape("Two euros.")]),
        layout=office.shape("Click to edit the title", kind="title") + office.shape("Prices include tax."),
        master=office.shape("Click to edit", kind="body") + office.shape("Harbour Authority"),
    )


def _only_layout() -> bytes:
    return _slides(("", []), layout=office.shape("The office closes on 24 December."))


def _numbered_lines() -> bytes:
    def line(text: str, level: int, kind: str = "", more: str = "") -> str:
        bullet = f'<a:buAutoNum type="{kind}"{more}/>' if kind else ""
        return f'<a:p><a:pPr lvl="{level}">{bullet}</a:pPr><a:r><a:t>{text}</a:t></a:r></a:p>'

    body = (
        line("Fill in the form", 0, "arabicPeriod") + line("in blue", 1, "alphaLcParenR") + line("in capitals", 1, "alphaLcParenR")
        + line("Sign it", 0, "arabicPeriod") + line("at the bottom", 1, "alphaLcParenR") + line("A remark", 0)
        + line("Pay", 0, "romanUcPeriod", ' startAt="4"')
    )  # fmt: skip
    return office.pptx(
        [office.shape("Steps", kind="title"), f"<p:sp><p:nvSpPr><p:nvPr/></p:nvSpPr><p:txBody>{body}</p:txBody></p:sp>"]
    )


SLIDES: Mapping[str, Callable[[], bytes]] = {
    "pptx/groups.pptx": _deck_groups,
    "pptx/deck.pptx": _deck,
    "pptx/chart.pptx": _deck_chart,
    "pptx/shapes.pptx": _slide_shapes,
    "pptx/strict.pptx": lambda: strict(_slide_shapes()),
    "pptx/macros.pptm": _pptm,
    "pptx/layouts.pptx": _layouts,
    "pptx/only_layout.pptx": _only_layout,
    "pptx/numbered_lines.pptx": _numbered_lines,
}
