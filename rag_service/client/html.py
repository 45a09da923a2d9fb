"""Answers and passages as HTML for a notebook's output.

Styles are inline and inherit the page's colours: they suit light and dark themes and survive viewers that drop style
sheets. Everything from documents or models is escaped; links and images in an answer stay text.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from html import escape
from uuid import UUID

from markdown_it import MarkdownIt

from rag_service.answering.quoting.quotes import SHOWN_PLACES
from rag_service.api.http.schemas import AnswerBody, CitationBody, PassageBody, PlaceBody, ScoresBody, StepBody
from rag_service.client.proof_words import SIGNS, describe_kind, describe_proof, describe_step, quoted_words
from rag_service.language.words import terms

_MARK = re.compile(r"\[C(\d+)\]")
# Stands for a mark during rendering, in characters of the private use area.
_PLACEHOLDER = re.compile("\ue000(\\d+)\ue001")
_PLACEHOLDER_SIGNS = re.compile("[\ue000\ue001]")
_AFTER_ROW = re.compile(r"(?m)\|[ \t]*(\ue000[\ue000\ue001\d \t]*)$")  # after a table row: not in a cell
_WORD = re.compile(r"[^\W_]+")
# Colours that read on white and on black alike.
_COLOURS = {
    "verified": "#2e9e5b",
    "unchecked": "#7a7a7a",
    "misattributed": "#c77d0a",
    "contradicted": "#d64545",
    "not_found": "#d64545",
}
_DECISION = {"can_proceed": "#2e9e5b", "uncertain": "#c77d0a", "out_of_scope": "#d64545"}
_ICONS = {"pdf": "📕", "xlsx": "📊", "csv": "📊", "tsv": "📊", "docx": "📝", "md": "📄", "txt": "📄"}
_BOX = (
    "border:1px solid rgba(128,128,128,.4);border-radius:8px;padding:10px 14px;margin:6px 0;max-width:60rem;"
    "line-height:1.5;color:inherit;background:transparent;text-align:left"
)
_QUIET = "opacity:.75;font-size:.85em"
_MARKED = "background:rgba(255,200,0,.35);color:inherit;border-radius:2px"


def answer_html(question: str, body: AnswerBody) -> str:
    """Question, answer with badges, decision and confidence, and each citation with place and quote."""
    colour = _DECISION.get(body.decision, "#888888")
    cited = "".join(_citation_row(citation, body) for citation in body.citations)
    shown = _places(body.places) if body.places else f"<div>{_answer_text(body)}</div>"
    foot = f"confidence {body.confidence:.2f} · {body.latency_ms:.0f} ms · {escape(body.model)}"
    return (
        f"<div style='{_BOX}'><div style='{_QUIET}'>{escape(question)}</div>"
        f"{''.join(_step(step) for step in body.steps)}{shown}"
        + (f"<ol style='list-style:none;margin:8px 0 0;padding:0'>{cited}</ol>{_legend(body)}" if cited else "")
        + f"<div style='{_QUIET};margin-top:8px'><span style='color:{colour};font-weight:600'>"
        f"{escape(body.decision)}</span> · {foot}{_reasons(body)}{_warnings(body)}</div></div>"
    )


def _places(places: Sequence[PlaceBody]) -> str:
    """Where the answer may stand: the first ones, the others folded."""
    rows = list(map(_place_row, places))
    first, more = "".join(rows[:SHOWN_PLACES]), "".join(rows[SHOWN_PLACES:])
    folded = f"<details><summary style='cursor:pointer;{_QUIET}'>show more</summary>{more}</details>" if more else ""
    return f"<div style='{_QUIET}'>No answer is certain. These places come nearest:</div>{first}{folded}"


def _place_row(place: PlaceBody) -> str:
    pieces, last = [], 0
    for word in place.marked:
        pieces += [escape(place.text[last : word.start]), f"<b>{escape(place.text[word.start : word.end])}</b>"]
        last = word.end
    part = f" <span style='{_QUIET}'>{escape(place.part)}</span>" if place.part else ""
    return (
        f"<div style='margin:8px 0'>{_icon(place.place)} <b>{escape(place.place)}</b>{part}"
        f"<div style='margin-left:12px'>{''.join(pieces)}{escape(place.text[last:])}</div></div>"
    )


def _reasons(body: AnswerBody) -> str:
    return "".join(f"<div>{escape(reason.text)}</div>" for reason in body.reasons)


def _step(step: StepBody) -> str:
    return f"<div style='{_QUIET}'>{escape(describe_step(step))}</div>"


def _answer_text(body: AnswerBody) -> str:
    badges = list(_badges(body))
    numbers = itertools.count()
    # Marks are numbered before rendering: one that Markdown leaves out must not shift the others.
    text = _MARK.sub(lambda _: f"\ue000{next(numbers)}\ue001", _PLACEHOLDER_SIGNS.sub("\ufffd", body.answer))
    rendered = _renderer().render(_AFTER_ROW.sub(r"\1 |", text))
    return _PLACEHOLDER.sub(lambda match: badges[int(match[1])], rendered)


def _badges(body: AnswerBody) -> Iterator[str]:
    """The badge of each mark, in order. After a table a mark stands for several citations."""
    last = 0
    for match in _MARK.finditer(body.answer):
        named = [citation for citation in body.citations if citation.mark == int(match[1])]
        here = [c for c in named if c.sentence_start <= match.start() and c.sentence_end > last]
        yield _badge(int(match[1]), here or named)
        last = match.start()


@lru_cache(maxsize=1)
def _renderer() -> MarkdownIt:
    # No links and images: an answer must not cause requests to other servers.
    return MarkdownIt("commonmark", {"html": False}).enable("table").disable(["link", "image", "autolink"])


def _badge(mark: int, citations: Sequence[CitationBody]) -> str:
    """A badge is only as good as the worst of its citations."""
    found = {citation.status for citation in citations}
    status = next((known for known in reversed(SIGNS) if known in found or not found), "not_found")
    sign, colour = SIGNS[status], _COLOURS[status]
    words = dict.fromkeys(describe_proof(citation) for citation in citations if citation.status == status)
    quotes = [f"{one.place}: “{one.quote}”" for citation in citations for one in quoted_words(citation)]
    tip = "\n".join([*words, *quotes])
    style = (
        f"border:1px solid {colour};color:{colour};border-radius:9px;padding:0 5px;margin:0 1px;"
        "font-size:.75em;white-space:nowrap;cursor:help"
    )
    return f"<span style='{style}' title='{escape(tip, quote=True)}'>{sign} {mark}</span>"


def _legend(body: AnswerBody) -> str:
    """The signs of the citations and what they mean."""
    kinds = {describe_kind(citation): citation.status for citation in body.citations}
    entries = " &nbsp; ".join(
        f"<span style='color:{_COLOURS.get(status, '#7a7a7a')}'>{SIGNS.get(status, '')}</span> {escape(kind)}"
        for kind, status in kinds.items()
    )
    return f"<div style='{_QUIET};margin-top:6px'>{entries}</div>"


def _context(quote: str, document: UUID | None, body: AnswerBody) -> str:
    """The passage around a quote, folded; nothing where the excerpt does not hold it."""
    for passage in body.context_used:
        before, found, after = passage.snippet.partition(quote)
        if found and passage.document_id == document and (before or after):
            marked = f"{escape(before)}<mark style='{_MARKED}'>{escape(quote)}</mark>{escape(after)}"
            return (
                f"<details style='margin-left:12px;{_QUIET}'><summary style='cursor:pointer'>in context</summary>"
                f"<div style='white-space:pre-wrap'>{marked}</div></details>"
            )
    return ""


def _citation_row(citation: CitationBody, body: AnswerBody) -> str:
    badge = _badge(citation.mark, [citation])
    if citation.quote is None:
        return f"<li style='margin:4px 0'>{badge} <span style='{_QUIET}'>no passage supports this sentence</span></li>"
    place = escape(citation.place or citation.title or "")
    colour = _COLOURS.get(citation.status, "#7a7a7a")
    quotes = "".join(
        f"<blockquote style='margin:2px 0 2px 12px;padding-left:8px;border-left:3px solid rgba(128,128,128,.4);"
        f"white-space:pre-wrap;font-size:.9em'>{escape(one.quote or '')}</blockquote>"
        f"{_context(one.quote or '', citation.document_id, body)}"
        for one in quoted_words(citation)
    )
    return (
        f"<li style='margin:4px 0'>{badge} {_icon(citation.place)} <b>{place}</b>"
        f" <span style='font-size:.85em;color:{colour}'>{escape(describe_proof(citation))}</span>{quotes}</li>"
    )


def _icon(place: str | None) -> str:
    name = (place or "").split(",", 1)[0]
    return _ICONS.get(name.rpartition(".")[2].lower(), "📄")


def _warnings(body: AnswerBody) -> str:
    parts = []
    if body.unmarked_sentences:
        parts.append(f"{body.unmarked_sentences} sentence(s) without citation")
    if body.withheld_sentences:
        parts.append(f"{body.withheld_sentences} sentence(s) withheld")
    return "".join(f" · {escape(part)}" for part in parts)


def passages_html(question: str, language: str, passages: Sequence[PassageBody]) -> str:
    """Passages with their scores by name and the question's terms highlighted."""
    wanted = frozenset(terms(question, language))
    items = "".join(_passage(number, passage, wanted, language) for number, passage in enumerate(passages, start=1))
    head = f"<div style='{_QUIET}'>{escape(question)} · {len(passages)} passage(s)</div>"
    return f"<div style='{_BOX}'>{head}{items or '<p>Nothing is relevant enough.</p>'}</div>"


def _passage(number: int, passage: PassageBody, wanted: frozenset[str], language: str) -> str:
    return (
        f"<details style='margin:6px 0'{' open' if number == 1 else ''}><summary style='cursor:pointer'>"
        f"<b>{number}.</b> {_icon(passage.place)} {escape(passage.place)} {_scores(passage.scores)}</summary>"
        f"<div style='white-space:pre-wrap;margin:4px 0 4px 18px;font-size:.92em'>"
        f"{highlight(passage.text, wanted, language)}</div></details>"
    )


def score_names(scores: ScoresBody) -> list[tuple[str, float]]:
    """(name, value) of the scores that are set."""
    named = ((name, getattr(scores, name)) for name in scores.__struct_fields__)
    return [(name, value) for name, value in named if value is not None]


def _scores(scores: ScoresBody) -> str:
    chips = "".join(
        f"<span style='border:1px solid rgba(128,128,128,.4);border-radius:4px;padding:0 4px;margin-left:4px;"
        f"font-size:.75em;white-space:nowrap'>{escape(name)} {value:.2f}</span>"
        for name, value in score_names(scores)
    )
    return f"<span>{chips}</span>"


def highlight(text: str, wanted: frozenset[str], language: str) -> str:
    """Escaped text in which the words that share an index term with `wanted` are marked."""
    parts, last = [], 0
    known: dict[str, bool] = {}
    for match in _WORD.finditer(text):
        word = match.group()
        if word not in known:
            known[word] = not wanted.isdisjoint(terms(word, language))
        if known[word]:
            parts += [escape(text[last : match.start()]), f"<mark style='{_MARKED}'>{escape(word)}</mark>"]
            last = match.end()
    return "".join(parts) + escape(text[last:])


def table_html(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A plain table; numbers are right-aligned."""
    cell = "padding:2px 10px;border-bottom:1px solid rgba(128,128,128,.3)"
    heads = "".join(f"<th style='{cell};text-align:left'>{escape(name)}</th>" for name in head)
    body = "".join("<tr>" + "".join(_cell(value, cell) for value in row) + "</tr>" for row in rows)
    return f"<table style='border-collapse:collapse;color:inherit'><tr>{heads}</tr>{body}</table>"


def _cell(value: object, style: str) -> str:
    if isinstance(value, float):
        return f"<td style='{style};text-align:right'>{value:.3f}</td>"
    side = "right" if isinstance(value, int) else "left"
    return f"<td style='{style};text-align:{side}'>{escape(str(value))}</td>"
