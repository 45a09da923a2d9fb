# ruff: noqa: E501 - lines of files
"""Slides as PowerPoint and Impress write them: groups, SmartArt, hidden slides, fields, notes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from tests.unit.readers import office_samples as office
from tests.unit.readers.corpus.sample import Sample
from tests.unit.readers.samples import with_members


def _group(*shapes: str) -> str:
    return f"<p:grpSp><p:nvGrpSpPr/><p:grpSpPr/>{''.join(shapes)}</p:grpSp>"


def _deck() -> Iterator[Sample]:
    broken = "<p:sp><p:nvSpPr><p:nvPr/></p:nvSpPr><p:txBody><a:p><a:r><a:t>Ligne une</a:t></a:r><a:br/><a:r><a:t>ligne deux</a:t></a:r></a:p><a:p><a:fld id='{1}' type='slidenum'><a:rPr/><a:t>77</a:t></a:fld></a:p></p:txBody></p:sp>"
    rows = office.slide_table(["Équipe", "2023", "2024"], ["Nord", "41", "47"], ["Sud", "38", "35"])
    deck = office.pptx(
        [office.shape("Bilan annuel", kind="ctrTitle"), office.shape("Direction de l’Ouest", kind="subTitle")],
        [
            office.shape("Objectifs", kind="title"),
            _group(office.shape("Réduire les délais"), _group(office.shape("à 12 jours"), office.shape("d’ici mars"))),
            broken,
        ],
        [office.shape("Résultats", kind="title"), rows, office.shape("Source : enquête interne"), office.shape("Confidentiel", kind="ftr")],
        [office.shape("Gestão de riscos", kind="title"), office.shape("Plano B pron\u00adto\u200b", "Seguro de 2 milhões"), office.shape("7", kind="sldNum")],
        [office.shape("Merci", kind="title"), office.shape("Questions : poste 4521")],
        notes={2: "Citer l’accord de Rennes.\nParler lentement.", 4: "Perguntar ao João."},
    )  # fmt: skip
    yield Sample(
        "pptx",
        "bilan.pptx",
        deck,
        {
            "Direction de l’Ouest": {"slide": 1, "headings": ("Bilan annuel",)},
            "Réduire les délais": {"slide": 2, "headings": ("Objectifs",)},
            "à 12 jours": {"slide": 2},
            "d’ici mars": {"slide": 2},
            "Ligne une ligne deux": {"slide": 2},
            "Citer l’accord de Rennes.": {"slide": 2, "part": "notes"},
            "Parler lentement.": {"slide": 2, "part": "notes"},
            "2023: 41": {"slide": 3, "row": 2},
            "2024: 47": {"slide": 3, "row": 2},
            "Équipe: Sud": {"slide": 3, "row": 3},
            "2024: 35": {"slide": 3, "row": 3},
            "Source : enquête interne": {"slide": 3},
            "Plano B pronto": {"slide": 4, "headings": ("Gestão de riscos",)},
            "Seguro de 2 milhões": {"slide": 4},
            "Perguntar ao João.": {"slide": 4, "part": "notes"},
            "Questions : poste 4521": {"slide": 5, "headings": ("Merci",)},
        },
        ("77", "2023: 47"),
    )


def _smart_art() -> Iterator[Sample]:
    frame = (
        '<p:graphicFrame><a:graphic><a:graphicData uri="http://schemas.openxmlformats.org/drawingml/2006/diagram">'
        '<dgm:relIds xmlns:dgm="http://schemas.openxmlformats.org/drawingml/2006/diagram" r:dm="rIdD"/></a:graphicData></a:graphic></p:graphicFrame>'
    )
    data = office.pptx([office.shape("Process", kind="title"), frame])
    diagram = (
        '<dgm:dataModel xmlns:dgm="http://schemas.openxmlformats.org/drawingml/2006/diagram" xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"><dgm:ptLst>'
        + "".join(f"<dgm:pt><dgm:t><a:bodyPr/><a:p><a:r><a:t>{text}</a:t></a:r></a:p></dgm:t></dgm:pt>" for text in ("Order the part", "Check it in bay 3", "Pay in 30 days"))
        + "</dgm:ptLst></dgm:dataModel>"
    )  # fmt: skip
    relations = (
        '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
        '<Relationship Id="rIdD" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/diagramData" Target="../diagrams/data1.xml"/></Relationships>'
    )
    members = {"ppt/slides/_rels/slide1.xml.rels": relations, "ppt/diagrams/data1.xml": diagram}
    yield Sample(
        "pptx",
        "process.pptx",
        with_members(data, {name: text.encode() for name, text in members.items()}),
        {text: {"slide": 1, "headings": ("Process",)} for text in ("Order the part", "Check it in bay 3", "Pay in 30 days")},
    )  # fmt: skip


def _impress() -> Iterator[Sample]:
    def frame(text: str, kind: str = "") -> str:
        shown = f'presentation:class="{kind}"' if kind else ""
        return f"<draw:frame {shown}><draw:text-box><text:p>{text}</text:p></draw:text-box></draw:frame>"

    grades = office.odf_table(
        [office.odf_cell("Ruta"), office.odf_cell("Km")], [office.odf_cell("Norte"), office.odf_cell("42")]
    )
    first = f"<draw:page>{frame('Rutas', 'title')}<draw:g><draw:custom-shape><text:p>Salida a las 7:30</text:p></draw:custom-shape><draw:g>{frame('Regreso a las 19:00')}</draw:g></draw:g><draw:frame>{grades}</draw:frame><presentation:notes>{frame('Llevar agua')}</presentation:notes></draw:page>"
    second = f"<draw:page>{frame('Costes', 'title')}{frame('Autobús: 380 <text:s/>euros')}{frame('3', 'page-number')}</draw:page>"
    yield Sample(
        "odp",
        "rutas.odp",
        office.odf("presentation", first + second),
        {
            "Salida a las 7:30": {"slide": 1, "headings": ("Rutas",)},
            "Regreso a las 19:00": {"slide": 1},
            "Ruta: Norte": {"slide": 1},
            "Km: 42": {"slide": 1},
            "Llevar agua": {"slide": 1, "part": "notes"},
            "Autobús: 380": {"slide": 2, "headings": ("Costes",)},
        },
    )


MAKERS: Sequence[Callable[[], Iterator[Sample]]] = (_deck, _smart_art, _impress)
