"""Finding the words of a passage that a claim rests on.

1. Letter by letter, up to the declared normalisation and letter case. That is proof only if nothing is left out that
   may change the sense: the words begin and end where a clause does, and the rest of the sentence holds no condition
   ("unless"), no negation and no "it is said that"; the sentence is no question, and no negation introduces its list.
2. The words that the model copied into its marks. They show where to look, and prove nothing.
3. The nearest sentence, or two neighbours, by the words that they share with the claim.

`locate` tells where the words that were found stand in the document.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import msgspec

from rag_service.answering.proof.analysis import WORD, Analysis, analyse, classify, is_negation
from rag_service.answering.proof.lexicon import fold_word, load_lexicon
from rag_service.domain import Chunk, Location, Span, column_letters, column_number
from rag_service.language.normalise import normalise
from rag_service.language.sentences import read_sentences
from rag_service.recent import kept_apart
from rag_service.word_boxes import with_boxes

_MARKUP = re.compile(r"[*_#>|\s]+")
_CELLS = re.compile(r"\$?([A-Z]{1,3})\$?(\d+)(?::\$?([A-Z]{1,3})\$?(\d+))?")
_NAME_AND_VALUE = 2  # cells of a line such as "Product: Hex bolt M8 | Stock: 120"
_REMEMBERED = 128  # prepared texts
_LIST_MARK = re.compile(r"(?:[\s>#|*•‣▪·–—+-]|\(?\d{1,3}[.)]\s)*")
_ITEM = re.compile(r"[*•‣▪·–—+-]|\d")
_EDGE_BEFORE = re.compile(r"(?:[,;:()|!?.\"*•‣▪·–—-]\s*|\A\W*)\Z")
_EDGE_AFTER = re.compile(r"\s*(?:[,;:()|!?\"]|\.(?!\d)|\Z)")
_CLAUSE_EDGE = re.compile(r"[,;:()|!?]|\.(?!\d)")
_NUMBER_BEFORE = re.compile(r"(?:\d[.,/ -]?|(?<!\d)(?<!\d )[$€£] ?|(?<!\w)-)\Z")  # "5 € 7" are two
_NUMBER_AFTER = re.compile(r"[.,/-]?\d| \d{3}(?!\d)| ?[%€$£]")
_NEW_LINE = re.compile(r"[*_`]*[ \t]*\r?\n(?:[ \t]*\r?\n\s*\S|[\s>#|*•·–—_-]*(?:\[[^\]\n]{1,40}\])?[^\W\d_a-zà-öø-ÿ])")
_COMPLEMENTISERS = frozenset({"that", "whether", "if", "que", "qu", "si", "se"})
_LONGEST_LIST = 20  # items searched backwards for the line that introduces them
_LONGEST_EVIDENCE = 600  # characters; longer words of evidence name no place
_PARAPHRASED_SHARE = 0.6  # of the words that a writer says to have copied
_LONGEST_ELISION = 600  # characters between two parts of a quotation with [...]
_NUMBERS_ONLY = 0.4  # share of a claim that common numbers alone must make up
_PAIR_GAIN = 2  # words of the claim that a second sentence must add


@dataclass(frozen=True)
class Evidence:
    """What a passage has for a claim: normalised characters [start, end)."""

    start: int
    end: int
    share: float  # of the claim's content words, 0..1


class Passage:
    """A text in which many claims are looked for; each part is read when it is first needed, and kept."""

    def __init__(self, text: str, language: str | None, *, cut: bool) -> None:
        self.original = text
        self.language = language
        self._cut = cut  # whether the text may begin in the middle of a sentence
        self.normalised = normalise(text, markup=True)
        lower = self.normalised.text.lower()
        self.lower = lower if len(lower) == len(self.normalised.text) else self.normalised.text

    @cached_property
    def sentences(self) -> list[tuple[int, int, bool]]:
        """Normalised offsets of each sentence without list marks and bars, and whether it is an item of a list."""
        found = []
        text, position = self.normalised.text, self.normalised.position
        for sentence in read_sentences(self.original, language=self.language):
            mark = _LIST_MARK.match(sentence.text)
            length = mark.end() if mark else 0
            start, end = position(sentence.start + length), position(sentence.end)
            while end > start and text[end - 1] in " |":
                end -= 1
            while start < end and text[start] in " |":
                start += 1
            if start < end:
                found.append((start, end, _ITEM.search(sentence.text, 0, length) is not None))
        return found

    @cached_property
    def starts(self) -> list[int]:
        return [start for start, _, _ in self.sentences]

    @cached_property
    def analyses(self) -> list[Analysis]:
        """Each sentence taken apart."""
        text, language = self.normalised.text, self.language
        return [analyse(text[start:end], language) for start, end, _ in self.sentences]

    @cached_property
    def stems(self) -> frozenset[str]:
        """Content words and numbers of the whole passage."""
        return frozenset().union(*(analysis.stems for analysis in self.analyses))

    def sentences_of(self, start: int, end: int) -> tuple[int, int]:
        """Return the first and last sentence that [start, end) touches."""
        return max(0, bisect_right(self.starts, start) - 1), max(0, bisect_right(self.starts, end - 1) - 1)

    # 1. letter by letter

    def find_whole(self, wording: str, position: int = 0) -> tuple[int, int] | None:
        """Where a lower-case normalised wording stands without cutting a word or a number in two."""
        at = self.lower.find(wording, position) if wording else -1
        while at >= 0:
            if stands_whole(self.lower, at, at + len(wording)):
                return at, at + len(wording)
            at = self.lower.find(wording, at + 1)
        return None

    def find_quote(self, wording: str, *, asks: bool = False, lead_in: str = "") -> tuple[int, int, bool] | None:
        """Where a wording stands, and whether that place proves it; a place that does is preferred.

        `asks`: the wording is a question. `lead_in`: the line of the answer that introduces it, in lower case.
        """
        first = place = self.find_whole(wording)
        while place is not None:
            if self._is_proof(*place, lead_in or wording, asks):
                return (*place, True)
            place = self.find_whole(wording, place[0] + 1)
        return None if first is None else (*first, False)

    def _is_proof(self, start: int, end: int, said: str, asks: bool) -> bool:
        first, last = self.sentences_of(start, end)
        if not self.sentences:
            return False
        begin, finish, item = self.sentences[first]
        finish = max(self.sentences[last][1], end)
        if begin < start or finish > end:
            begin, finish = self._line(min(begin, start), start, end, finish)
        before, after = self.lower[begin:start], self.lower[end:finish]
        if WORD.search(before) or WORD.search(after):
            if self._cut and first == 0 and self.original[:1].islower():
                return False
            joints = WORD.findall(_CLAUSE_EDGE.split(before)[-1])  # ", because": what joins a clause to the one before
            begins = _EDGE_BEFORE.search(before) or not any(classify(word, self.language).content for word in joints)
            if not (begins and _EDGE_AFTER.match(after)):
                return False
            if self._binds(before, after):
                return False
        elif self._cut and start == 0 and self.original[:1].islower():
            return False
        if after.lstrip("\"' *)")[:1] == "?" and not asks:
            return False
        return not (item and self._introduced_by_negation(first, said))

    def _line(self, begin: int, start: int, end: int, finish: int) -> tuple[int, int]:
        """[begin, finish) around a match, cut where another line begins with a capital; no stop need end the first."""
        original, position = self.normalised.original, self.normalised.position
        if begin < start:
            first = original(begin, start + 1)
            for line in _NEW_LINE.finditer(self.original, first[0], first[1]):
                begin = min(start, position(line.end() - 1))
        if finish > end and (new := _NEW_LINE.search(self.original, *original(end - 1, finish))):
            finish = max(end, position(new.start()))
        return begin, finish

    def _binds(self, before: str, after: str) -> bool:
        """Return whether what a quote leaves out of its sentence may change its sense."""
        conditions = load_lexicon(self.language).conditions
        left = [fold_word(word) for word in WORD.findall(before)]
        if any(word in conditions for word in (*left, *map(fold_word, WORD.findall(after)))):
            return True
        if left and left[-1] in _COMPLEMENTISERS:
            return True
        clause = _CLAUSE_EDGE.split(before.rstrip(" ,;:(|"))[-1], _CLAUSE_EDGE.split(after.lstrip(" ,;:)|."))[0]
        return any(map(self._negates, clause))

    def _introduced_by_negation(self, item: int, said: str) -> bool:
        """Return whether the line above a list denies its items ("Not covered:") and the answer leaves it out."""
        for start, end, is_item in reversed(self.sentences[max(0, item - _LONGEST_LIST) : item]):
            if not is_item:
                line = self.lower[start:end]
                return line.endswith(":") and line.strip(" :*") not in said and self._negates(line)
        return False

    def _negates(self, text: str) -> bool:
        return any(is_negation(fold_word(word[0]), text, word.end(), self.language) for word in WORD.finditer(text))

    def find_parts(self, parts: Sequence[str]) -> tuple[int, int] | None:
        """Where the parts of a quotation with elisions stand, in order and near to each other."""
        places: list[tuple[int, int]] = []
        for part in parts:
            place = self.find_whole(part, places[-1][1] if places else 0)
            if place is None or (places and place[0] - places[-1][1] > _LONGEST_ELISION):
                return None
            places.append(place)
        return (places[0][0], places[-1][1]) if places else None

    # 2. and 3. evidence

    def find_named(self, named: str, claim: Analysis | None = None) -> tuple[int, int] | None:
        """Return the place of copied words; where they stand more than once, that with most of the claim's words.

        Blanks, quotation marks, hyphens, the bars between cells and letter case may differ.
        """
        if len(named) > _LONGEST_EVIDENCE:
            return None
        folded = fold_word(self.lower)
        words = WORD.findall(fold_word(normalise(named, fold_case=True, markup=True).text))
        if not words:
            return None
        pattern = re.compile(r"(?<!\w)" + r"\W{1,12}".join(map(re.escape, words)) + r"(?!\w)")
        places = [match.span() for match in pattern.finditer(folded)]
        if len(places) < 2 or claim is None:
            return places[0] if places else None
        return max(places, key=lambda place: _share(claim.stems, self.analyses[self.sentences_of(*place)[0]].stems))

    def find_paraphrased(self, named: str) -> tuple[int, int] | None:
        """Return the sentences nearest to words that a writer copied inexactly; None: they are not this passage's."""
        nearest = self.find_nearest(analyse(normalise(named[:_LONGEST_EVIDENCE], markup=True).text, self.language))
        return (nearest.start, nearest.end) if nearest is not None and nearest.share >= _PARAPHRASED_SHARE else None

    def find_nearest(self, claim: Analysis) -> Evidence | None:
        """Return the sentence, or two neighbours, with most of the claim's words; None: no shared word."""
        stems = claim.stems
        if stems.isdisjoint(self.stems):
            return None
        held = [stems & analysis.stems for analysis in self.analyses]
        counts = [len(words) for words in held]
        first = last = max(range(len(held)), key=lambda i: (counts[i], -len(self.analyses[i].stems)))
        best = held[first]
        for neighbour in (first + 1, first - 1):
            if 0 <= neighbour < len(held) and len(held[neighbour] - best) >= _PAIR_GAIN:
                first, last = min(first, neighbour), max(first, neighbour)
                best = best | held[neighbour]
                break
        share = len(best) / len(stems)
        if share < _NUMBERS_ONLY and not any(token.kind is not None and token.stem in best for token in claim.content):
            return None
        return Evidence(self.sentences[first][0], self.sentences[last][1], share)


def _share(stems: frozenset[str], held: frozenset[str]) -> float:
    return len(stems & held) / len(stems) if stems else 0.0


# Every answer looks through twenty passages, and those that people ask about come again. A hundred of them,
# read to the last sentence, are 10 MB.
@kept_apart(_REMEMBERED)
def prepare(text: str, language: str | None, cut: bool) -> Passage:
    """Return the passage of a text; `cut`: it may begin in the middle of a sentence."""
    return Passage(text, language, cut=cut)


def passage_of(chunk: Chunk, language: str | None) -> Passage:
    """Return the passage of a chunk."""
    return prepare(chunk.text, language, chunk.start > 0)


def find_telling(quote: str, passage: Passage) -> tuple[int, int] | None:
    """Return the place of words that decide about a sentence; None: they do not stand there, or say nothing ("the")."""
    content = analyse(_MARKUP.sub(" ", quote)).content
    says = any(token.kind is None for token in content) or len({token.stem for token in content}) > 1
    return passage.find_named(quote) if says else None


def stands_whole(text: str, start: int, end: int) -> bool:
    """Return whether the match [start, end) cuts neither a word nor a number in two."""
    first, last = text[start], text[end - 1]
    if first.isalnum() and start and text[start - 1].isalnum():
        return False
    if last.isalnum() and end < len(text) and text[end].isalnum():
        return False
    if first.isdigit() and _NUMBER_BEFORE.search(text[max(0, start - 5) : start]):
        return False
    return not (last.isdigit() and _NUMBER_AFTER.match(text, end))


def locate(
    chunk: Chunk,
    start: int,
    end: int,
    claim: Analysis,
    *,
    is_copy: bool = False,
) -> Location | None:
    """Page, heading or cell of characters [start, end) of the stored text, for a quote that carries `claim`.

    The place of the quote's first character. A quote over several cells has the place of the cell with
    the number that the claim states; failing that, the range of all its cells. A claim that copies a line of
    three cells or more states them all: which of them is meant, its numbers do not tell. None if no span has it.
    """
    spans = [span for span in chunk.spans if span.start < end and span.end > start]
    if not spans:
        return None
    cells = [span for span in spans if span.location.cell]
    if len(cells) < 2:
        return with_boxes(spans[0].location, spans, start, end)
    copies_line = is_copy and len(cells) > _NAME_AND_VALUE
    stating = [] if copies_line else _stating_cells(chunk, cells, start, claim)
    return _merge([span.location for span in stating or cells])


def _stating_cells(chunk: Chunk, cells: Sequence[Span], start: int, claim: Analysis) -> list[Span]:
    """For each number of the claim the cell that holds it, the one with most of the claim's words."""
    texts: list[str] = []
    for span in cells:
        local = max(0, min(start, span.start) - chunk.start), span.end - chunk.start
        texts.append(normalise(chunk.text[local[0] : local[1]], fold_case=True, markup=True).text)
        start = span.end
    read = [analyse(text, claim.language) for text in texts]
    chosen: list[Span] = []
    for number in claim.numbers:
        holders = [i for i, cell in enumerate(read) if any(other.stem == number.stem for other in cell.numbers)]
        if holders:
            chosen.append(cells[max(holders, key=lambda i: (len(read[i].stems & claim.stems), -i))])
    return sorted(set(chosen), key=lambda span: span.start)


def _merge(places: Sequence[Location]) -> Location:
    """Return the first place, its cell widened to hold the cells of all places on the same sheet.

    Of a cell merged downwards only the row that the quote is of counts.
    """
    first = places[0]
    if len(places) == 1:
        return first
    corners = [
        (match.groups(), place.row)
        for place in places
        if place.sheet == first.sheet and (match := _CELLS.fullmatch(place.cell or ""))
    ]
    if not corners:
        return first
    columns = [column_number(c) for (left, _, right, _), _ in corners for c in (left, right or left)]
    rows = [int(r) for (_, top, _, bottom), row in corners for r in ((row,) if row else (top, bottom or top))]
    corner, opposite = (f"{column_letters(f(columns))}{f(rows)}" for f in (min, max))
    cell = corner if corner == opposite else f"{corner}:{opposite}"
    return msgspec.structs.replace(first, cell=cell, row=min(rows) if first.row is not None else None)
