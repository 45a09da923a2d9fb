# ruff: noqa: E501 - lines of files
"""Documents as Word writes them: raw XML with tracked changes, notes, boxes, fields and merged tables."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Iterator, Sequence

import docx

from tests.unit.readers import office_samples as office
from tests.unit.readers.corpus.sample import Sample
from tests.unit.readers.samples import saved, with_members

_SPACES = (
    'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    ' xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'
    ' xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"'
    ' xmlns:wps="http://schemas.microsoft.com/office/word/2010/wordprocessingShape"'
    ' xmlns:wp="http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing"'
    ' xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
    ' xmlns:v="urn:schemas-microsoft-com:vml" xmlns:w14="http://schemas.microsoft.com/office/word/2010/wordml"'
    ' xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math"'
)


def run(text: str, properties: str = "") -> str:
    return f'<w:r>{f"<w:rPr>{properties}</w:rPr>" if properties else ""}<w:t xml:space="preserve">{text}</w:t></w:r>'


def par(*content: str, style: str = "") -> str:
    chosen = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    return f"<w:p>{chosen}{''.join(part if part.startswith('<') else run(part) for part in content)}</w:p>"


def cell(*content: str, span: int = 1, down: str = "") -> str:
    merge = {"": "", "start": '<w:vMerge w:val="restart"/>', "on": "<w:vMerge/>"}[down]
    inner = "".join(part if part.startswith("<w:p>") or part.startswith("<w:tbl>") else par(part) for part in content)
    return f'<w:tc><w:tcPr><w:gridSpan w:val="{span}"/>{merge}</w:tcPr>{inner}</w:tc>'


def row(*cells: str, header: bool = False) -> str:
    return f"<w:tr>{'<w:trPr><w:tblHeader/></w:trPr>' if header else ''}{''.join(cells)}</w:tr>"


def table(*rows: str, columns: int) -> str:
    return f"<w:tbl><w:tblPr/><w:tblGrid>{'<w:gridCol/>' * columns}</w:tblGrid>{''.join(rows)}</w:tbl>"


def document(*body: str, **parts: str) -> bytes:
    """A Word file; `parts` are footnotes, endnotes and comments."""
    members = {"word/document.xml": f"<w:document {_SPACES}><w:body>{''.join(body)}</w:body></w:document>"}
    for name, inner in parts.items():
        members[f"word/{name}.xml"] = f"<w:{name} {_SPACES}>{inner}</w:{name}>"
    relations = "".join(
        f'<Relationship Id="rId{name}" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/{name}" Target="{name}.xml"/>'
        for name in parts
    )
    data = saved(docx.Document())
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        related = archive.read("word/_rels/document.xml.rels").decode()
    members["word/_rels/document.xml.rels"] = related.replace("</Relationships>", f"{relations}</Relationships>")
    return with_members(data, {name: text.encode() for name, text in members.items()})


def note(kind: str, number: int, text: str) -> str:
    return f'<w:{kind} w:id="{number}">{par(text)}</w:{kind}>'


def box(text: str) -> str:
    """A text box as Word writes it: a drawing, and the same once more for old versions."""
    content = f"<w:txbxContent>{par(text)}</w:txbxContent>"
    return (
        '<w:r><mc:AlternateContent><mc:Choice Requires="wps"><w:drawing><wp:anchor><a:graphic><a:graphicData><wps:wsp>'
        f"<wps:txbx>{content}</wps:txbx></wps:wsp></a:graphicData></a:graphic></wp:anchor></w:drawing></mc:Choice>"
        f"<mc:Fallback><w:pict><v:shape><v:textbox>{content}</v:textbox></v:shape></w:pict></mc:Fallback></mc:AlternateContent></w:r>"
    )


def _minutes() -> Iterator[Sample]:
    body = (
        par("Acta de la reunión", style="Heading1"),
        par("La fianza es de ", "<w:del><w:r><w:delText>300</w:delText></w:r></w:del>", "<w:ins>" + run("350 euros") + "</w:ins>", "."),
        par("<w:moveFrom>" + run("Frase vieja de sitio") + "</w:moveFrom>", "Queda aprobado."),
        par("<w:moveTo>" + run("El turno cambia el 3 de mayo.") + "</w:moveTo>"),
        par("Incom", "<w:r><w:softHyphen/></w:r>", "patible con la norma ISO", "<w:r><w:noBreakHyphen/></w:r>", "9001."),
        par("pro\u00advee\u00addores\u200f homolo\u00adgados"),
        par("Ver ", '<w:r><w:fldChar w:fldCharType="begin"/></w:r>', '<w:r><w:instrText> HYPERLINK "https://x.example" </w:instrText></w:r>',
            '<w:r><w:fldChar w:fldCharType="separate"/></w:r>', "la intranet", '<w:r><w:fldChar w:fldCharType="end"/></w:r>', "."),
        par("El plazo vence en junio", '<w:r><w:footnoteReference w:id="2"/></w:r>', "."),
        par("Firmado", '<w:r><w:endnoteReference w:id="2"/></w:r>', '<w:r><w:commentReference w:id="0"/></w:r>', "."),
        par(box("Recuadro: extensión 4471")),
        par(run("texto oculto", "<w:vanish/>")),
        par('<w:sdt><w:sdtPr><w14:checkbox/></w:sdtPr><w:sdtContent>' + run("☒") + "</w:sdtContent></w:sdt>", " Acepta el reglamento"),
        par("<w:smartTag>" + run("Sevilla") + "</w:smartTag>", ", 12 de mayo"),
        par("Tel.", "<w:r><w:tab/></w:r>", "954 111 222", "<w:r><w:br/></w:r>", "Fax 954 111 223"),
    )  # fmt: skip
    place = {"headings": ("Acta de la reunión",)}
    yield Sample(
        "docx",
        "acta.docx",
        document(
            *body,
            footnotes=note("footnote", 2, "Salvo prórroga del consejo."),
            endnotes=note("endnote", 2, "Por poderes de Marta Gil."),
            comments='<w:comment w:id="0" w:author="Rosa">' + par("Revisar con Rosa el miércoles") + "</w:comment>",
        ),
        {
            "La fianza es de 350 euros.": place,
            "Queda aprobado.": place,
            "El turno cambia el 3 de mayo.": place,
            "Incompatible con la norma ISO-9001.": place,
            "proveedores homologados": place,
            "Ver la intranet.": place,
            "El plazo vence en junio": place,
            "Salvo prórroga del consejo.": {"part": "footnote 1"},
            "Por poderes de Marta Gil.": {"part": "endnote 1"},
            "Revisar con Rosa el miércoles": {"part": "comment 1"},
            "Recuadro: extensión 4471": place,
            "☒ Acepta el reglamento": place,
            "Sevilla, 12 de mayo": place,
            "954 111 222": place,
            "Fax 954 111 223": place,
        },
        ("300", "Frase vieja", "HYPERLINK", "Fax 954 111 223 954", "texto oculto"),
    )


def _tables() -> Iterator[Sample]:
    inner = table(row(cell("Talla"), cell("Pecho"), header=True), row(cell("M"), cell("98 cm")), columns=2)
    first = table(
        row(cell("Grade", down="start"), cell("2023", span=2), cell("2024", span=2), header=True),
        row(cell("", down="on"), cell("Nights"), cell("Amount"), cell("Nights"), cell("Amount"), header=True),
        row(cell("B"), cell("12"), cell("1 440 €"), cell("15"), cell("1 950 €")),
        row(cell("C"), cell("7"), cell("700 €"), cell("9"), cell("990 €")),
        columns=5,
    )
    second = table(
        row(cell("Article"), cell("Détails"), header=True),
        row(cell("Chemise"), cell("voir le tableau", inner)),
        row(cell("Pantalon"), cell("sur mesure")),
        columns=2,
    )
    yield Sample(
        "docx",
        "tarifs.docx",
        document(par("Tarifs 2024", style="Heading1"), first, par("Deuxième tableau"), second, par("Fin du document")),
        {
            "2023 Nights: 12": {"row": 3, "headings": ("Tarifs 2024",)},
            "2023 Amount: 1 440 €": {"row": 3},
            "2024 Nights: 15": {"row": 3},
            "2024 Amount: 1 950 €": {"row": 3},
            "2024 Amount: 990 €": {"row": 4},
            "Grade: C": {"row": 4},
            "Deuxième tableau": {"headings": ("Tarifs 2024",)},
            "Article: Chemise": {"row": 2},
            "98 cm": {"row": 2},
            "Article: Pantalon": {"row": 3},
            "Détails: sur mesure": {"row": 3},
            "Fin du document": {},
        },
        ("2023 Amount: 1 950", "2024 Nights: 12", "Grade: 12"),
    )


def _odt() -> Iterator[Sample]:
    body = (
        '<text:h text:outline-level="1">Regulamento</text:h>'
        "<text:p>A cau\u00adção é de <text:span>90 euros</text:span><text:line-break/>por mês.</text:p>"
        '<text:p>Prazo: <text:change-start text:change-id="c1"/>15 dias<text:change-end text:change-id="c1"/>.</text:p>'
        '<text:section text:name="s"><text:p>Na secção há uma regra.</text:p></text:section>'
        '<text:p><text:a xlink:href="https://x.example" xmlns:xlink="http://www.w3.org/1999/xlink">Formulário 22</text:a></text:p>'
        "<text:list><text:list-item><text:p>Primeiro nível</text:p><text:list><text:list-item><text:p>Segundo nível</text:p>"
        "</text:list-item></text:list></text:list-item></text:list>"
        '<text:p>Fim<text:note text:note-class="endnote"><text:note-citation>i</text:note-citation><text:note-body>'
        "<text:p>Nota final de Coimbra.</text:p></text:note-body></text:note></text:p>"
        '<draw:frame><draw:object/><svg:title xmlns:svg="urn:oasis:names:tc:opendocument:xmlns:svg-compatible:1.0">Mapa da praça</svg:title></draw:frame>'
    )
    place = {"headings": ("Regulamento",)}
    yield Sample(
        "odt",
        "regulamento.odt",
        office.odf("text", body),
        {
            "A caução é de 90 euros": place,
            "por mês.": place,
            "Prazo: 15 dias.": place,
            "Na secção há uma regra.": place,
            "Formulário 22": place,
            "- Primeiro nível": place,
            "- Segundo nível": place,
            "Nota final de Coimbra.": {"part": "endnote i"},
        },
    )


def _rtf() -> Iterator[Sample]:
    source = (
        rb"{\rtf1\ansi\ansicpg1252\uc1\deff0{\fonttbl{\f0\fswiss\fcharset0 Calibri;}{\f1\fcharset204 Arial;}}"
        rb"{\colortbl ;\red255\green0\blue0;}{\*\generator Riched20 10.0;}\viewkind4"
        rb"\pard Devolu\'e7\'e3o em 14 dias \'96 sem custos.\par"
        rb"{\pntext\f0 \'b7\tab}Item um com pre\'e7o 12,50 \'80\par"
        rb"\pard\f1 \'cf\'f0\'e8\'e2\'e5\'f2\f0\par "
        rb"{\deleted texto riscado}{\v invis\'edvel}Linha\line seguinte\par "
        rb"Compa\-\'f1\'eda\~Norte e self\_service\par"
        rb"\trowd\cellx1000\cellx2000\intbl Cidade\cell Valor\cell\row\trowd\cellx1000\cellx2000\intbl Porto\cell 80 EUR\cell\row"
        rb"\trowd\cellx1000\cellx2000\intbl Faro\cell 95 EUR\cell\row\pard Fim da tabela.\par"
        rb"{\*\bkmkstart _a}{\*\bkmkend _a}{\object{\*\objdata 0105}{\result Imagem do gr\'e1fico}}\par}"
    )
    yield Sample(
        "rtf",
        "devolucao.rtf",
        source,
        {
            "Devolução em 14 dias – sem custos.": {"paragraph": 1},
            "Item um com preço 12,50 €": {},
            "Привет": {},
            "Compañía\u00a0Norte e self-service": {},
            "Cidade: Porto | Valor: 80 EUR": {},
            "Cidade: Faro | Valor: 95 EUR": {},
            "Fim da tabela.": {},
        },
        ("Riched20", "riscado", "invisível", "0105", "bkmk"),
    )


MAKERS: Sequence[Callable[[], Iterator[Sample]]] = (_minutes, _tables, _odt, _rtf)
