"""Answers and passages as HTML: complete, inert, and no better than their citations."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser
from typing import Any
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_service.answering.places import write_places
from rag_service.api.http.presenters import present_answer, present_hit
from rag_service.api.http.schemas import AnswerBody, EvidenceBody, PassageBody
from rag_service.client import CitedAnswer, IngestedFile, IngestReport, Passages, table
from rag_service.client.html import highlight
from rag_service.domain import CitationStatus, Decision, FoundPlace, ProofMethod, ReplyKind
from rag_service.language.words import terms
from tests.unit.api.samples import ANSWER, CITATION, HIT, QUESTION, UNSUPPORTED

PLACE = "production.xlsx, sheet Stocks, cell C12"
HOSTILE = '<script>alert(1)</script><img src=x onerror="alert(2)">\'"&'
_ALLOWED = {
    "div", "span", "p", "ol", "ul", "li", "b", "strong", "em", "blockquote", "details", "summary", "mark", "table",
    "thead", "tbody", "tr", "th", "td", "code", "pre", "hr", "br", "h1", "h2", "h3", "h4", "h5", "h6",
}  # fmt: skip


class Reader(HTMLParser):
    """Collects tags, attributes and text."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: dict[str, list[str]] = {}
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attrs:
            self.attributes.setdefault(name, []).append(value or "")

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def read(html: str) -> Reader:
    reader = Reader()
    reader.feed(html)
    reader.close()
    return reader


def check_inert(html: str) -> Reader:
    reader = read(html)
    assert reader.tags <= _ALLOWED, reader.tags - _ALLOWED
    assert not [name for name in reader.attributes if name.startswith("on") or name in ("href", "src")]
    return reader


def answer(**changes: Any) -> CitedAnswer:
    return CitedAnswer(question=QUESTION, body=msgspec.structs.replace(present_answer(ANSWER), **changes))


def passages(**changes: Any) -> Passages:
    item: PassageBody = msgspec.structs.replace(present_hit(PassageBody, HIT), **changes)
    return Passages(question="Lyon unités", language="fr", items=(item,))


def test_an_answer_shows_badges_places_quotes_decision_and_confidence() -> None:
    reader = check_inert(answer()._repr_html_())
    shown = "".join(reader.text)
    for expected in (QUESTION, "Hay 4200 unidades", "✓ 1", "✗ 7", PLACE, "4200 unités", "can_proceed", "0.93"):
        assert expected in shown
    assert any(f"{PLACE}: “4200 unités”" in title for title in reader.attributes["title"])


def test_an_answer_reads_well_on_a_terminal() -> None:
    lines = repr(answer()).splitlines()
    assert lines[0] == f"Q: {QUESTION}"
    assert f"  [C1] verified: {PLACE}: “4200 unités”" in lines
    assert "  [C7] not found in the documents" in lines
    assert lines[-1] == "  can_proceed, confidence 0.93"


@pytest.mark.parametrize(
    ("changes", "sign", "words"),
    [
        ({"method": ProofMethod.QUOTE}, "✓", "exact quote"),
        ({"method": ProofMethod.JUDGE, "judge": "llama3.2"}, "✓", "checked by llama3.2"),
        ({"method": ProofMethod.COMPUTED, "formula": "24 + 60 = 84"}, "✓", "computed: 24 + 60 = 84"),
        ({"status": CitationStatus.UNCHECKED}, "≈", "reworded; compare with the source"),
        (
            {"status": CitationStatus.UNCHECKED, "reason": "judge: not supported"},
            "≈",
            "reworded; compare with the source",
        ),
        ({"status": CitationStatus.MISATTRIBUTED}, "≠", "from another passage than the one cited"),
        (
            {"status": CitationStatus.CONTRADICTED, "reason": "Lease says: “6 months”"},
            "✗",
            "the source says something else: Lease says: “6 months”",
        ),
    ],
)
def test_a_citation_says_how_it_was_proved_or_what_is_wrong(changes: dict[str, Any], sign: str, words: str) -> None:
    citation = replace(CITATION, **{"method": None, **changes})
    asked = CitedAnswer(question=QUESTION, body=present_answer(replace(ANSWER, citations=(citation,))))
    shown = "".join(check_inert(asked._repr_html_()).text)
    assert f"{sign} 1" in shown
    assert shown.count(words.partition(":")[0]) >= 2  # beside the quote, and in the legend
    assert words in shown and words in repr(asked)


def test_a_quote_can_be_read_in_its_context() -> None:
    shown = answer()._repr_html_()
    assert "in context" in shown
    assert ">4200 unités</mark>" in shown


def test_a_mark_is_no_better_than_the_sentence_that_it_stands_in() -> None:
    text = "Hay 4200 [C1]. Cuestan 9 [C1]."
    first = replace(CITATION, sentence_start=0, sentence_end=14)
    second = replace(UNSUPPORTED, mark=1, sentence_start=15, sentence_end=30)
    body = present_answer(replace(ANSWER, text=text, citations=(first, second)))
    shown = "".join(read(CitedAnswer(question=QUESTION, body=body)._repr_html_()).text)
    assert "Hay 4200 ✓ 1. Cuestan 9 ✗ 1." in shown


def test_a_mark_for_several_citations_shows_the_worst() -> None:
    both = (
        replace(CITATION, sentence_start=0, sentence_end=9),
        replace(UNSUPPORTED, mark=1, sentence_start=9, sentence_end=15),
    )
    body = present_answer(replace(ANSWER, text="Hay 4200 o no [C1].", citations=both))
    assert "o no ✗ 1." in "".join(read(CitedAnswer(question=QUESTION, body=body)._repr_html_()).text)


def test_marks_behind_a_table_are_kept_and_do_not_shift_the_others() -> None:
    text = "Vea:\n| A | B |\n|---|---|\n| x | 4200 | [C1][C7]\n\nLuego 4200 [C1]."
    body = present_answer(
        replace(
            ANSWER,
            text=text,
            citations=(
                replace(CITATION, sentence_start=25, sentence_end=38),
                replace(UNSUPPORTED, sentence_start=25, sentence_end=43),
                replace(CITATION, sentence_start=text.index("Luego"), sentence_end=len(text)),
            ),
        )
    )
    reader = check_inert(CitedAnswer(question=QUESTION, body=body)._repr_html_())
    shown = " ".join("".join(reader.text).split())
    assert "td" in reader.tags
    assert "4200 ✓ 1✗ 7 Luego 4200 ✓ 1." in shown


def test_a_mark_that_nothing_resolves_is_shown_as_not_found() -> None:
    body = present_answer(replace(ANSWER, text="Hay 4200 [C3].", citations=()))
    assert "Hay 4200 ✗ 3." in "".join(read(CitedAnswer(question=QUESTION, body=body)._repr_html_()).text)


@pytest.mark.parametrize(
    "text",
    [
        HOSTILE,
        "[click](javascript:alert(1))",
        "![image](https://evil.example/x.png)",
        "<https://evil.example>",
        "[a]: https://evil.example\n\n[a]",
        "<iframe src='https://evil.example'></iframe>",
        "`<b>`\n\n    <script>code</script>",
        "[C\ue0001] \ue0009\ue001",
    ],
)
def test_an_answer_stays_inert(text: str) -> None:
    check_inert(answer(answer=f"{text} [C1]")._repr_html_())


@given(st.text(max_size=200))
def test_whatever_a_model_writes_stays_inert(text: str) -> None:
    check_inert(answer(answer=text, decision=text, model=text)._repr_html_())


def test_documents_stay_inert_and_readable() -> None:
    citation = msgspec.structs.replace(present_answer(ANSWER).citations[0], quote=HOSTILE, place=HOSTILE)
    for shown in (
        CitedAnswer(question=HOSTILE, body=msgspec.structs.replace(answer().body, citations=[citation])),
        passages(text=HOSTILE, place=HOSTILE, file_name=HOSTILE),
        IngestReport(items=(IngestedFile(name=HOSTILE, outcome="failed", reason=HOSTILE),)),
        table((HOSTILE,), [(HOSTILE,)]),
    ):
        assert HOSTILE in "".join(check_inert(shown._repr_html_()).text)


def test_passages_show_scores_by_name_and_mark_the_words_asked_for() -> None:
    html = passages()._repr_html_()
    shown = "".join(check_inert(html).text)
    for score in ("relevance 0.91", "dense 0.70", "bm25 8.50", "coverage 0.60", "fused 0.80", "rerank 0.95"):
        assert score in shown
    assert ">Lyon</mark>" in html
    assert ">unités</mark>" in html
    assert "4200</mark>" not in html


def test_passages_read_well_on_a_terminal_and_are_a_sequence() -> None:
    found = passages()
    assert repr(found).splitlines()[1].startswith(f"1. {PLACE} (relevance 0.91, dense 0.70")
    assert (len(found), found[0].text, len(found[:1])) == (1, HIT.chunk.text, 1)
    empty = Passages(question="x", language="en", items=())
    assert "Nothing is relevant enough" in empty._repr_html_()
    assert repr(empty) == "0 passage(s) for: x"


def test_scores_that_did_not_run_are_left_out() -> None:
    scores = msgspec.structs.replace(present_hit(PassageBody, HIT).scores, dense=None, rerank=None)
    shown = passages(scores=scores)._repr_html_()
    assert "dense" not in shown
    assert "rerank" not in shown


@given(st.text(max_size=80), st.text(max_size=40))
def test_highlighting_changes_no_text(text: str, question: str) -> None:
    html = highlight(text, frozenset(terms(question, "en")), "en")
    assert "".join(read(f"<pre>{html}</pre>").text).replace("\r\n", "\n") == text.replace("\r\n", "\n")


def test_tables_and_reports_read_well() -> None:
    shown = table(("name", "n", "share"), [("ñ", 3, 0.5)])
    assert repr(shown).splitlines() == ["name  n  share", "ñ     3  0.500"]
    steering = table(("name",), [("\x1b]0;a\x07\n\u202eb",)])
    assert repr(steering).splitlines() == ["name", "\ufffd]0;a\ufffd\ufffd\ufffdb"]
    report = IngestReport(
        items=(
            IngestedFile(name="a.md", outcome="added", chunk_count=2, document_id=UUID(int=1)),
            IngestedFile(name="b.pdf", outcome="failed", reason="It is encrypted."),
        )
    )
    assert repr(report).splitlines() == ["added     a.md (2 chunks)", "failed    b.pdf: It is encrypted."]
    assert [item.name for item in report.failed] == ["b.pdf"]


def test_answer_has_what_programs_need() -> None:
    found: AnswerBody = answer().body
    shown = answer()
    assert (shown.text, shown.id, shown.decision, shown.confidence) == (
        ANSWER.text, ANSWER.id, "can_proceed", 0.93,
    )  # fmt: skip
    assert (list(shown.citations), list(shown.sources)) == (found.citations, found.sources)


@pytest.mark.parametrize("text", ["Hay 4200 unidades en Lyon.", HOSTILE])
def test_places_take_the_place_of_an_answer_in_html_and_on_a_terminal(text: str) -> None:
    chunk = HIT.chunk
    place = FoundPlace(
        document=chunk.document, chunk_id=chunk.id, text=text, marked=((4, 8),), start=0, end=9, location=chunk.location
    )
    places = [replace(place, text=f"{number}: {text}") for number in range(5)]
    found = write_places(replace(ANSWER, decision=Decision.UNCERTAIN), places, introduction="These come nearest.")
    assert (found.kind, found.citations) == (ReplyKind.PLACES, ())
    shown = CitedAnswer(question=QUESTION, body=present_answer(found))
    reader = check_inert(shown._repr_html_())
    written = "".join(reader.text)
    assert all(one.text in written and one.text in repr(shown) for one in places)
    assert "verified" not in written and "✓" not in written
    assert [one.text for one in places if one.text in found.text] == [one.text for one in places[:3]]


def test_an_answer_and_a_refusal_are_no_places() -> None:
    assert ANSWER.kind is ReplyKind.ANSWER
    assert replace(ANSWER, decision=Decision.OUT_OF_SCOPE).kind is ReplyKind.NOTHING


def test_all_words_that_a_sentence_rests_on_are_listed() -> None:
    cited = answer().body.citations[0]
    more = EvidenceBody(quote="Stock is counted on Mondays", start=1, end=28, location=None, place="stock.txt, line 3")
    several = answer(citations=[msgspec.structs.replace(cited, evidence=[*cited.evidence, more])])
    assert "Stock is counted on Mondays" in "".join(read(several._repr_html_()).text)
    assert "stock.txt, line 3: “Stock is counted on Mondays”" in repr(several)
