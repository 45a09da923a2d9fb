# ruff: noqa: E501 - lines of files
"""OpenDocument texts, sheets and slides."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tests.unit.readers import office_samples as office
from tests.unit.readers.samples import with_members

_LEVELS = (
    '<text:list-level-style-number text:level="1" style:num-format="1" style:num-suffix="."/>'
    '<text:list-level-style-number text:level="2" style:num-format="1" style:num-suffix="." text:display-levels="2"/>'
    '<text:list-level-style-number text:level="3" style:num-format="a" style:num-suffix=")"/>'
)
_OUTLINE = (
    '<text:outline-level-style text:level="1" style:num-format="1" style:num-suffix="."/>'
    '<text:outline-level-style text:level="2" style:num-format="1" text:display-levels="2"/>'
)


def _list(*items: str, style: str = "L1", more: str = "") -> str:
    named = f' text:style-name="{style}"' if style else ""
    return f"<text:list{named}{more}>{''.join(items)}</text:list>"


def _item(*content: str, more: str = "") -> str:
    inner = "".join(part if part.startswith("<") else f"<text:p>{part}</text:p>" for part in content)
    return f"<text:list-item{more}>{inner}</text:list-item>"


def _heading(text: str, level: int = 1, more: str = "") -> str:
    return f'<text:h text:outline-level="{level}"{more}>{text}</text:h>'


def _odt(body: str, *, outline: str = "", styles: str = "") -> bytes:
    lists = f'<text:list-style style:name="L1">{_LEVELS}</text:list-style>'
    data = office.odf("text", body, styles=lists + styles)
    names = office._ODF_NAMES
    sheet = f"<office:document-styles {names}><office:styles><text:outline-style>{outline}</text:outline-style></office:styles></office:document-styles>"
    return with_members(data, {"styles.xml": sheet.encode()}) if outline else data


def _odt_outline() -> bytes:
    return _odt(
        _heading("Scope")
        + "<text:p>For all staff.</text:p>"
        + _heading("Leave")
        + _heading("Annual leave", 2)
        + "<text:p>23 days.</text:p>"
        + _heading("Sick leave", 2)
        + "<text:p>Tell your manager.</text:p>"
        + _heading("Index", more=' text:is-list-header="true"'),
        outline=_OUTLINE,
    )


def _odt_list() -> bytes:
    return _odt(
        "<text:p>Steps</text:p>"
        + _list(_item("Fill in the form.", _list(_item("Name."), _item("Date."), style="")), _item("Send it."))
        + "<text:p>Later:</text:p>"
        + _list(_item("Wait."), more=' text:continue-numbering="true"')
        + _list(_item("New list."), _item("Goes on.", more=' text:start-value="7"'))
    )


def _odt_bullets() -> bytes:
    bullets = '<text:list-style style:name="L2"><text:list-level-style-bullet text:level="1" text:bullet-char="•"/></text:list-style>'
    return _odt("<text:p>Bring:</text:p>" + _list(_item("a pen"), _item("paper"), style="L2"), styles=bullets)


def _odt_nested_table() -> bytes:
    inner = office.odf_table(
        [office.odf_cell("Day"), office.odf_cell("Fee")], [office.odf_cell("Sunday"), office.odf_cell("3")]
    )
    outer = office.odf_table(
        [office.odf_cell("Zone"), office.odf_cell("Fees")],
        [office.odf_cell("North"), f"<table:table-cell><text:p>see below</text:p>{inner}</table:table-cell>"],
    )
    return _odt(f"<text:p>Fees</text:p>{outer}<text:p>Paid on entry.</text:p>")


def _odt_note() -> bytes:
    note = '<text:note text:note-class="footnote"><text:note-citation>1</text:note-citation><text:note-body><text:p>Plus tax.</text:p></text:note-body></text:note>'
    return _odt(f"<text:p>The fee is 500{note} euros.</text:p><text:p>It is paid once.</text:p>")


def _odt_formats() -> bytes:
    def style(name: str, kind: str, more: str = "") -> str:
        return f'<text:list-style style:name="{name}"><text:list-level-style-number text:level="1" style:num-format="{kind}" {more}/></text:list-style>'

    styles = (
        style("R", "I", 'style:num-suffix="."')
        + style(
            "A", "a", 'style:num-prefix="(" style:num-suffix=")" text:start-value="26" style:num-letter-sync="true"'
        )
        + style("N", "", 'style:num-suffix="."')
    )
    return _odt(
        _list(_item("First"), _item("Second"), style="R")
        + "<text:p>Then:</text:p>"
        + _list(_item("Last letter", "It goes on."), _item("After it"), style="A", more=' xml:id="list1"')
        + "<text:p>Later:</text:p>"
        + _list(_item("Goes on"), style="A", more=' text:continue-list="list1"')
        + _list(_item("No number"), style="N"),
        styles=styles,
    )


def _odt_headings_in_lists() -> bytes:
    return _odt(
        _list(_item(_heading("Scope")))
        + "<text:p>For all staff.</text:p>"
        + _list(
            _item(_heading("Leave"), _list(_item(_heading("Annual leave", 2)), style="")),
            more=' text:continue-numbering="true"',
        )
        + "<text:p>23 days.</text:p>"
        + _list(_item(_list(_item(_heading("Sick leave", 2)), style="")), more=' text:continue-numbering="true"')
    )


def _odt_table() -> bytes:
    numbered = f"<table:table-cell>{_list(_item('<text:p/>'))}</table:table-cell>"
    on = ' text:continue-numbering="true"'
    again = f"<table:table-cell>{_list(_item('<text:p/>'), more=on)}</table:table-cell>"
    cell = office.odf_cell
    return _odt(
        "<text:p>Gates</text:p>"
        + office.odf_table(
            [cell("No."), cell("Gate"), cell("State")],
            [numbered, cell("North"), cell("closed")],
            [again, cell("South"), cell("open")],
        )
    )


def _odt_changes() -> bytes:
    deletion = '<text:tracked-changes><text:changed-region><text:deletion><text:h text:outline-level="1">Old heading</text:h></text:deletion></text:changed-region></text:tracked-changes>'
    return _odt(
        deletion
        + _heading("Scope")
        + "<text:p>All staff.</text:p>"
        + _heading("Leave", more=' text:restart-numbering="true" text:start-value="4"'),
        outline=_OUTLINE,
    )


def _odt_edges() -> bytes:
    data = _odt("<text:p>Gate 4 is closed.</text:p><text:p><draw:frame><draw:image/></draw:frame></text:p>")
    page = "<style:header><text:p>City line</text:p></style:header><style:footer><text:p>3</text:p><text:p>For staff only</text:p></style:footer>"
    sheet = f'<office:document-styles {office._ODF_NAMES}><office:master-styles><style:master-page style:name="Standard">{page}</style:master-page></office:master-styles></office:document-styles>'
    return with_members(data, {"styles.xml": sheet.encode()})


def _hidden_words() -> bytes:
    body = (
        '<text:p>See <text:hidden-text text:condition="x" text:string-value="no" text:is-hidden="true">no</text:hidden-text>clause 7.2.</text:p>'
        '<text:p>Nor this<text:hidden-paragraph text:condition="x" text:is-hidden="true"/>.</text:p>'
        '<text:section text:name="S" text:display="none"><text:p>Nor this section.</text:p></text:section>'
        "<text:p><text:ruby><text:ruby-base>漢</text:ruby-base><text:ruby-text>kan</text:ruby-text></text:ruby> and its sound.</text:p>"
    )
    return office.odf("text", body)


def _ods_values() -> bytes:
    cell = office.odf_cell
    return office.odf(
        "spreadsheet",
        office.odf_table(
            [cell("Item"), cell("Share"), cell("Day")],
            [
                cell("Chair", 'table:number-rows-spanned="2"'),
                cell("25 %", 'office:value-type="percentage" office:value="0.25"'),
                cell("02/03/26", 'office:value-type="date" office:date-value="2026-03-02"'),
            ],
            [
                "<table:covered-table-cell/>",
                cell("75 %", 'office:value-type="percentage" office:value="0.75"'),
                cell(""),
            ],
            name="May",
        ),
    )


def _ods_merged() -> bytes:
    wide = office.odf_cell("2024", 'table:number-columns-spanned="2"') + "<table:covered-table-cell/>"
    rows = [["", "Plan", "Actual"], ["North", "100", "110"], ["Total", "100", "110"]]
    cells = [[office.odf_cell("Region"), wide], *([office.odf_cell(text) for text in row] for row in rows)]
    return office.odf("spreadsheet", office.odf_table(*cells, name="Sales"))


def _ods_repeated() -> bytes:
    cell = office.odf_cell
    comment = "<table:table-cell><office:annotation><text:p>With tax.</text:p></office:annotation><text:p>40</text:p></table:table-cell>"
    empty = '<table:table-cell table:number-columns-repeated="1000"/>'
    rows = f'<table:table-row table:number-rows-repeated="1048000">{empty}</table:table-row>'
    table = office.odf_table([cell("Item"), cell("Price")], [cell("Chair"), comment, empty], name="May")
    return office.odf("spreadsheet", table.replace("</table:table>", f"{rows}</table:table>"))


def _hidden_rows() -> bytes:
    text = office.odf_cell
    rows = [
        ("", ("Item", "Cost", "Days")),
        ("", ("Chair", "21", "3")),
        ('table:visibility="filter"', ("Desk", "55", "4")),
    ]
    lines = "".join(
        f"<table:table-row {hidden}>{''.join(map(text, cells))}</table:table-row>" for hidden, cells in rows
    )
    columns = '<table:table-column/><table:table-column table:visibility="collapse"/><table:table-column/>'
    style = '<style:style style:name="T0" style:family="table"><style:table-properties table:display="false"/></style:style>'
    other = f'<table:table table:name="Keys" table:style-name="T0"><table:table-row>{text("Key 99")}</table:table-row></table:table>'
    return office.odf(
        "spreadsheet", f'<table:table table:name="Prices">{columns}{lines}</table:table>{other}', styles=style
    )


def _odp_groups() -> bytes:
    def frame(content: str, attributes: str = "") -> str:
        return f"<draw:frame {attributes}><draw:text-box>{content}</draw:text-box></draw:frame>"

    group = "<draw:custom-shape><text:p>In a shape</text:p></draw:custom-shape>"
    inner = "<text:list><text:list-item><text:p>two</text:p></text:list-item></text:list>"
    table = office.odf_table(
        *[[office.odf_cell(text) for text in row] for row in (["Item", "Price", "Tax"], ["Chair", "40", "8"])]
    )
    return office.odf(
        "presentation",
        '<presentation:footer-decl presentation:name="f">Lines of the north</presentation:footer-decl><draw:page>'
        + frame("<text:p>Plan</text:p>", 'presentation:class="title"')
        + f"<draw:g>{frame('<text:p>Inside a group</text:p>')}{group}</draw:g>"
        + frame(f"<text:list><text:list-item><text:p>one</text:p>{inner}</text:list-item></text:list>")
        + f"<draw:frame>{table}</draw:frame>"
        + f"<presentation:notes>{frame('<text:p>Ask Ana.</text:p>')}</presentation:notes></draw:page>",
    )


def _odp() -> bytes:
    title = '<draw:frame presentation:class="title"><draw:text-box><text:p>Rates</text:p></draw:text-box></draw:frame>'
    text = f"<draw:frame><draw:text-box>{_list(_item('Up by two percent'), _item('Hold until May'))}</draw:text-box></draw:frame>"
    notes = "<presentation:notes><draw:frame><draw:text-box><text:p>Ask Ana.</text:p></draw:text-box></draw:frame></presentation:notes>"
    lists = f'<text:list-style style:name="L1">{_LEVELS}</text:list-style>'
    return office.odf("presentation", f"<draw:page>{title}{text}{notes}</draw:page>", styles=lists)


def _hidden_slide() -> bytes:
    def page(text: str, style: str = "") -> str:
        return f'<draw:page draw:name="A" draw:master-page-name="M" draw:style-name="{style}"><draw:frame><draw:text-box><text:p>{text}</text:p></draw:text-box></draw:frame></draw:page>'

    style = '<style:style style:name="D" style:family="drawing-page"><style:drawing-page-properties presentation:visibility="hidden"/></style:style>'
    deck = office.odf("presentation", page("Three euros.") + page("Two euros.", "D"), styles=style)
    frames = "".join(
        f"<draw:frame{kind}><draw:text-box><text:p>{text}</text:p></draw:text-box></draw:frame>"
        for kind, text in (("", "Harbour Authority"), (' presentation:class="title"', "Click to edit"))
    )
    masters = f'<style:master-page style:name="M">{frames}</style:master-page><style:master-page style:name="Unused"/>'
    return with_members(
        deck,
        {"styles.xml": f"<office:document-styles {office._ODF_NAMES}>{masters}</office:document-styles>".encode()},
    )


OPENDOCUMENT: Mapping[str, Callable[[], bytes]] = {
    "ods/values.ods": _ods_values,
    "odt/outline.odt": _odt_outline,
    "odt/numbered_list.odt": _odt_list,
    "odt/bullets.odt": _odt_bullets,
    "odt/footnote.odt": _odt_note,
    "odp/groups.odp": _odp_groups,
    "ods/merged_year.ods": _ods_merged,
    "odt/nested_table.odt": _odt_nested_table,
    "odt/formats.odt": _odt_formats,
    "odt/headings_in_lists.odt": _odt_headings_in_lists,
    "odt/numbered_rows.odt": _odt_table,
    "odt/changes.odt": _odt_changes,
    "odt/page_edges.odt": _odt_edges,
    "ods/repeated.ods": _ods_repeated,
    "odp/deck.odp": _odp,
    "odt/hidden_words.odt": _hidden_words,
    "ods/hidden_rows.ods": _hidden_rows,
    "odp/hidden_slide.odp": _hidden_slide,
}
