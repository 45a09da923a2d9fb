"""Whether an answer answers: it refuses, leaves a step of the question open, or quotes something else.

A quote proves its own words, and not that they answer. Computed and judged answers have proofs of their own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from rag_service.answering.drafts.doubts import Doubt
from rag_service.answering.drafts.draft import Draft
from rag_service.answering.proof.analysis import Analysis, analyse
from rag_service.answering.proof.claims import strip_marks
from rag_service.answering.proof.lexicon import Pole, load_lexicon
from rag_service.answering.proof.passage import passage_of
from rag_service.answering.quoting.answer_types import answer_type, lacks_answer
from rag_service.domain import (
    ENCODING_GUESSED,
    MAIL_HEADER,
    AnswersQuestion,
    Chunk,
    Citation,
    CitationStatus,
    Hit,
    ProofMethod,
)
from rag_service.language.designations import ordinals_in, read_asked_designations, read_designations
from rag_service.language.languages import languages_of
from rag_service.language.normalise import normalise
from rag_service.language.sentences import read_sentences, split_sentences
from rag_service.language.words import fold, terms, word_forms, words
from rag_service.retrieval.found import Found
from rag_service.retrieval.planner import QueryPlan
from rag_service.retrieval.question import Question
from rag_service.retrieval.versions import amends

_MEASURED = frozenset({"en", "es", "fr", "pt"})  # languages of the questions in evals/sets that quotes answer
_LETTER = re.compile(r"[^\W\d_]")
_ROW = "row"
_SHORTEST_MONTH = 3  # letters of "Feb"
_ENDS = re.compile(r"[.!?…。！？:;]\W*\Z")  # of a sentence
_QUESTION = re.compile(r"[^.!?\n]+\?")
# Of words, to be taken for the same question. Of 14 certain quotes from lists of questions in evals/sets, two of which
# answer another one, all right ones are left from .5 to .6.
_SAME_QUESTION = 0.5
_YEAR = re.compile(r"\b(?:19|20)\d\d\b")
_FIGURE = re.compile(r"\d(?:[\d.,]*\d)?")
_MEASURE = re.compile(r"(\d(?:[\d.,]*\d)?)\s?([^\W\d_]+|[%€£$])|([€£$])\s?(\d(?:[\d.,]*\d)?)")
_COLUMNS = re.compile(r"\S \| \S|\S {2,}\S")  # as readers write the cells of a row


def is_refusal(text: str, citations: Sequence[Citation], *, refusal: str, language: str | None) -> bool:
    """Whether an answer says that it has none, with the refusal of the prompt or in words of its own.

    An answer with a verified sentence is none, even if it says what the documents leave open.
    """
    if text.strip() in ("", refusal):
        return True
    if any(citation.status is CitationStatus.VERIFIED for citation in citations):
        return False
    sentences = [strip_marks(sentence.text) for sentence in read_sentences(text, language=language)]
    pattern = load_lexicon(language).refusal
    return bool(sentences) and pattern.search(fold(sentences[0].replace("’", "'")).strip()) is not None


def doubt_answer(question: Question, found: Found, draft: Draft) -> dict[Doubt, bool]:
    """What speaks against a draft as the answer to this question, whatever is proved of its sentences."""
    language, files, citations, shown = found.plan.language, found.files, draft.checked.citations, draft.shown
    asked = question.text if found.versions is None else found.versions.question
    if files is not None:
        asked = files.rest  # without the names of files
    quoted = " ".join(citation.quote for citation in citations if citation.quote)
    marks = dict.fromkeys(citation.mark for citation in citations)
    passages = [shown[mark - 1].chunk for mark in marks if 1 <= mark <= len(shown)]
    is_open = found.is_chain and leaves_open(found.plan, found.weights, quoted)
    is_quoted = draft.answers is None and not draft.is_computed
    return {
        Doubt.JUDGED_PARTIAL: draft.answers is AnswersQuestion.PARTLY,
        Doubt.JUDGED_OTHER: draft.answers is AnswersQuestion.OTHER,
        Doubt.PART_OPEN: (is_quoted and bool(found.parts) and draft.model.only_quotes)
        or (draft.is_computed and 0 < len(citations) < sum(part.is_clause for part in found.parts)),
        Doubt.STEP_OPEN: is_open and draft.answers is None,
        Doubt.AMENDED: is_quoted and any(amends(hit.chunk, passage) for passage in passages for hit in shown),
        Doubt.SOURCES_DIFFER: is_quoted and differ_in_figures(citations, shown),
        Doubt.LANGUAGE_UNMEASURED: is_quoted and is_unmeasured(asked + quoted, [language]),
        Doubt.ENCODING_GUESSED: any(ENCODING_GUESSED in passage.extra for passage in passages),
        Doubt.ABOUT_ANOTHER: (is_quoted and is_about_another(asked, citations, passages, language))
        or (draft.is_computed and _tell_of_others(Quoted(asked, citations, passages, language))),
    }


def is_unmeasured(text: str, languages: Iterable[str | None]) -> bool:
    """Return whether nothing says how often quotes are right in the script of a text, or in one of these languages."""
    letters = _LETTER.findall(text)
    latin = sum(map(str.isascii, fold("".join(letters))))
    return 2 * latin < len(letters) or not {*languages} <= {None, *_MEASURED}


def differ_in_figures(citations: Sequence[Citation], shown: Sequence[Hit]) -> bool:
    """Return whether a passage holds what is quoted from another one, word by word but for its figures."""
    texts = [" ".join(hit.chunk.text.split()) for hit in shown]
    for quote in (" ".join(citation.quote.split()) for citation in citations if citation.quote):
        pattern = _FIGURE.sub("#", quote)
        if pattern != quote and any(quote not in text and pattern in _FIGURE.sub("#", text) for text in texts):
            return True
    return False


def leaves_open(plan: QueryPlan, weights: Mapping[str, float], quoted: str) -> bool:
    """Whether quotes lack a word of the question, in any form, that some passage has.

    Args:
        plan: of the question.
        weights: the index terms that the corpora hold.
        quoted: all quotes.
    """
    held = word_forms(quoted)
    asked = {term.group for term in plan.terms if term.group >= 0 and term.term in weights}
    return not asked <= {term.group for term in plan.terms if term.term in held}


@dataclass(frozen=True)
class Quoted:
    """What is quoted in reply to a question."""

    question: str
    citations: Sequence[Citation]  # at least one
    passages: Sequence[Chunk]  # those that are quoted
    language: str  # of the question

    @property
    def all(self) -> Iterator[str]:
        """All quotes."""
        return (citation.quote for citation in self.citations if citation.quote)

    @property
    def first(self) -> str:
        """The first quote."""
        return self.citations[0].quote or ""


def is_about_another(question: str, citations: Sequence[Citation], passages: Sequence[Chunk], language: str) -> bool:
    """Return whether quotes cannot answer a question, whatever they say: one of `QUOTE_RULES` speaks against them.

    Args:
        passages: those that are quoted.
    """
    if not citations or any(citation.method is not ProofMethod.QUOTE for citation in citations):
        return False
    quoted = Quoted(question, citations, passages, language)
    return any(speaks_against(quoted) for speaks_against in QUOTE_RULES.values())


def _is_row(quoted: Quoted) -> bool:
    """Return whether what is quoted first is the row of a table, which alone does not tell what it is about."""
    return _quoted_part(quoted.citations[0]) == _ROW


def _is_mail_header(quoted: Quoted) -> bool:
    return {*map(_quoted_part, quoted.citations)} == {MAIL_HEADER}


def _lacks_answer(quoted: Quoted) -> bool:
    """Return whether the first quote lacks the figure, the hour, the person or the reason that is asked for."""
    language = quoted.passages[0].document.language if quoted.passages else None
    return lacks_answer(quoted.question, quoted.first, quoted.language, quoted_in=language)


def _lacks_names(quoted: Quoted) -> bool:
    """Return whether the passages lack a number, a month or a name of the question."""
    asked = set(_names_in(quoted.question, quoted.language))
    for passage in quoted.passages:
        for names in _names_of(passage, quoted.language):
            if not asked:
                return False
            asked.difference_update(names)
    return bool(asked)


def _is_of_another_year(quoted: Quoted) -> bool:
    """Return whether the quotes name years, and not the one that is asked about."""
    asked, said = (set(_YEAR.findall(text)) for text in (quoted.question, " ".join(quoted.all)))
    return bool(asked and said) and asked.isdisjoint(said)


def _is_loose(quoted: Quoted) -> bool:
    """Return whether a loose line without a word of the question is quoted: a page header, or a telephone number."""
    is_line = _ENDS.search(quoted.first) is None and "\n" not in quoted.first
    return is_line and set(terms(quoted.first, quoted.language)).isdisjoint(terms(quoted.question, quoted.language))


def _answers_another_question(quoted: Quoted) -> bool:
    """Return whether the passage asks nearly this question itself, and what is quoted is not the answer below it."""
    first, passage = quoted.citations[0], quoted.passages[0]
    if first.start is None:
        return False
    asked = set(words(fold(quoted.question)))
    questions = [(found.end(), set(words(fold(found[0])))) for found in _QUESTION.finditer(passage.text)]
    above = max((end for end, _ in questions if end <= first.start - passage.start), default=0)
    alike = {end: len(asked & said) / len(asked | said) for end, said in questions}
    nearest = max(alike, key=alike.__getitem__, default=above)
    return nearest != above and alike[nearest] > _SAME_QUESTION


def _skips_the_answer(quoted: Quoted) -> bool:
    """Return whether the section of the first quote has an amount before it that answers as well, and is not quoted.

    Below "How much you can borrow", the maximum comes first and then what reduces it. The quote does not answer better
    if no word of the question is in it that the section has not said already, in its heading or there.
    """
    question, citations, language = quoted.question, quoted.citations, quoted.language
    wanted, first, passage = answer_type(question), citations[0], quoted.passages[0]
    if wanted is None or first.location is None or first.start is None or not first.location.headings:
        return False
    headings = first.location.headings
    places = {place for citation in citations for place in range(citation.start or 0, citation.end or 0)}
    spans = [span for span in passage.spans if span.location.headings == headings and span.end <= first.start]
    asked, said = set(terms(question, language)), set(terms(headings[-1], language))
    if asked.isdisjoint(said):
        return False
    again = asked & {*terms(first.quote or "", language)}
    for span in spans:
        text = passage.text[span.start - passage.start : span.end - passage.start]
        said.update(terms(text, language))
        if span.start not in places and wanted.search(fold(text)) and again <= said:
            return True
    return False


def _says_the_opposite(quoted: Quoted) -> bool:
    """Return whether a quote lacks the negation of a question, or has the opposite of one of its words only."""
    texts = (quoted.question, quoted.first)
    asked, said = (analyse(normalise(text, markup=True).text, quoted.language) for text in texts)
    if asked.negates and not said.negates:
        return True
    poles = {(pole.pair, pole.side) for pole in _poles(said)}
    return any((pole.pair, -pole.side) in poles and (pole.pair, pole.side) not in poles for pole in _poles(asked))


def _poles(said: Analysis) -> Iterator[Pole]:
    for token in said.tokens:
        if token.kind is not None:
            yield from token.kind.poles


def _tell_of_others(quoted: Quoted) -> bool:
    """Return whether a letter or number says which of several is asked about, and passages tell of others only."""
    asked = list(read_asked_designations(quoted.question, quoted.language))
    if not asked:
        return False
    texts = [*quoted.all, *(text for one in quoted.passages for text in (one.text, one.document.title))]
    told = [(word_forms(word), one) for text in texts for word, one in read_designations(text)]
    said = {one for text in texts for one in ordinals_in(text)}  # "the second and third floor"
    for word, one in asked:
        forms = word_forms(word)
        others = {other for named, other in told if not forms.isdisjoint(named)}
        if others and one not in others | said:
            return True
    return False


def _is_designated_elsewhere(quoted: Quoted) -> bool:
    """Return whether the letter or number that says which of several is asked about stands beside the quotes only."""
    asked = read_asked_designations(quoted.question, quoted.language)
    places = (citation.location for citation in quoted.citations)
    headings = (heading for place in places if place for heading in place.headings)
    near = " ".join([*quoted.all, *headings, *(passage.document.title for passage in quoted.passages)])
    said = {*words(fold(near)), *ordinals_in(near)}
    return any(fold(one) not in said for _, one in asked)


def _is_of_another(quoted: Quoted) -> bool:
    """Return whether the letter or number of the question says that the quotes are about another one of several."""
    return _tell_of_others(quoted) or _is_designated_elsewhere(quoted)


def _measures(text: str) -> set[tuple[str, str]]:
    """Return the figures of a text, each after its unit."""
    return {(found[2] or found[3], found[1] or found[4]) for found in _MEASURE.finditer(fold(text))}


def _has_rival(quoted: Quoted) -> bool:
    """Return whether the passage holds another figure: in a sentence with the same words of the question and the unit.

    The rule and its exception, the first offer and the second.
    """
    first, passage, language = quoted.citations[0], quoted.passages[0], quoted.language
    said, shared = _measures(quoted.first), {*terms(quoted.question, language)} & {*terms(quoted.first, language)}
    if not said or not shared or first.start is None or first.end is None:
        return False
    units, begins, ends = {unit for unit, _ in said}, first.start - passage.start, first.end - passage.start
    for start, end in split_sentences(passage.text, language=language):
        text = passage.text[start:end]
        others = {one for one in _measures(text) if one[0] in units}
        is_beside = end <= begins or ends <= start
        if is_beside and others and others.isdisjoint(said) and shared <= {*terms(text, language)}:
            return True
    return False


def _names_of(passage: Chunk, language: str) -> Iterator[Iterable[str]]:
    """What a passage names, what is cheapest to tell first."""
    yield words(fold(passage.text))
    yield re.findall(r"\d+", passage.text)  # the year of a date
    yield _names_in(f"{passage.document.title} {passage.document.file_name or ''}", language)
    yield _months_in(passage.text)
    yield passage_of(passage, language).stems


def _names_in(text: str, language: str) -> Iterator[str]:
    """The numbers, months and names of a text."""
    months = _months()
    for token in analyse(normalise(text, markup=True).text, language).content:
        if token.kind is not None and token.kind.folded in months:
            yield f"month {months[token.kind.folded]}"
        elif token.is_number or token.name:
            yield token.stem


def _months_in(text: str) -> Iterator[str]:
    """The months that a text may name: in words of any language, cut short or not, or by number in a date."""
    for word in set(words(fold(text))):
        if len(word) >= _SHORTEST_MONTH:
            yield from (f"month {number}" for name, number in _months().items() if name.startswith(word))
    yield from (f"month {int(found[1])}" for found in re.finditer(r"(?<=[./-])(0?[1-9]|1[0-2])\b", text))


@cache
def _months() -> Mapping[str, int]:
    """The number of each name of a month; without those that are also stop words, such as "may"."""
    return {
        name: number
        for data in languages_of(None)
        for number, names in enumerate(data.proof.months, start=1)
        for name in names - data.stop_words
    }


def _quoted_part(citation: Citation) -> str:
    """What a citation quotes: `_ROW` for cells of a sheet or a line of columns on a page, MAIL_HEADER, or nothing."""
    place = citation.location
    if place is None:
        return ""
    if (place.part or "").rpartition(" > ")[2] == MAIL_HEADER:
        return MAIL_HEADER
    return _ROW if place.cell or place.row or _COLUMNS.search(citation.quote or "") else ""


# By name; `python -m evals.sets.ledger` measures what each is worth.
QUOTE_RULES: Mapping[str, Callable[[Quoted], bool]] = {
    "row": _is_row,
    "loose line": _is_loose,
    "mail header": _is_mail_header,
    "figure, hour, person, reason": _lacks_answer,
    "negation, opposite": _says_the_opposite,
    "another question": _answers_another_question,
    "amount before": _skips_the_answer,
    "year": _is_of_another_year,
    "designation": _is_of_another,
    "another figure": _has_rival,
    "name, month, number": _lacks_names,
}
