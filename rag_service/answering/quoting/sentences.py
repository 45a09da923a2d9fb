"""What can be quoted of a passage: its sentences, table rows and lists, with the words that each holds."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

from rag_service.domain import Span
from rag_service.language.dates import read_day
from rag_service.language.languages import load_language
from rag_service.language.ngrams import Ngrams, character_ngrams
from rag_service.language.sentences import HEADING, split_sentences
from rag_service.language.words import count_words, fold, word_forms, words
from rag_service.recent import kept_apart

_MIN_WORDS = 3  # of a quote; page numbers and rules of tables have fewer
_LIST_LENGTH = 900  # maximum characters of a list that is quoted whole
_PREVIOUS_LENGTH = 300  # maximum characters of the sentence before a list or an example
_ITEM_LENGTH = 450  # maximum characters of a list item that is quoted whole; 300 to 900 choose alike (decision 020)
_ROW = re.compile(r"[^\n|:]{1,80}: [^\n|]*+\| ")  # "Name: value | …"; the first name may be "#"
_LIST_ITEM = re.compile(rf"[-*+•] |\d{{1,2}}[.)] |\||{_ROW.pattern}")
_ITEM = re.compile(r"[-*+•] |\d{1,2}[.)] ")
_ITEM_FOLLOWS = re.compile(rf"\n*+(?:{_LIST_ITEM.pattern})")
_RULE_FOLLOWS = re.compile(r"\s*+(\|[ :|-]*-[ :|-]*)(?:\n|\Z)")
_FIRST_LINE = re.compile(r"\s*([^\n|]{1,120}[^\n|.!?…:;])[ \t]*\n\s*\n")
_ENDS = re.compile(r"[.!?…。！？:;]\W*\Z")  # of a sentence, or of a piece of one
_LABEL = (
    4  # words of a line that may be a heading: "Who can apply"; longer ones tell something: "Spare keys at the desk"
)
_LEAVES_LINE = re.compile(r"\s*\n\s*\n\s*\S")  # what follows is another paragraph
_LONG_WORD = re.compile(r"[^\W\d_]{4,}")  # "of" and "and" stand in names, too
_QUESTION = re.compile(r"[?？؟\u037e][\s*_\"'”’»)\]]*\Z")  # also in bold type
_BULLET = re.compile(r"^(?:[-*+•>] |\d{1,2}[.)] )+")


@dataclass(frozen=True, kw_only=True)
class Sentence:
    """A candidate for the answer: a sentence, a table row, or a list with the sentence that announces it."""

    text: str  # on one line, or on as many as its list has
    folded: str  # for comparisons
    forms: frozenset[str]  # as `word_forms` gives them
    ngrams: Ngrams = field(compare=False, repr=False)
    start: int  # first character in the passage, as the text stands there
    end: int
    position: int  # among the sentences of its passage, headings included; of an item, that of its last sentence
    header: str  # of the Markdown table that it is a row of: column names and the rule below them
    is_row: bool
    continues: bool  # the sentence before it, in the same paragraph
    mark: int = 0  # number of its passage, from 1
    unmatched: float | None = None  # how far the question's words are from its surroundings, see rating.py


class _Place(NamedTuple):
    """Where a sentence is in its passage."""

    start: int
    end: int
    position: int


@kept_apart(256)  # popular passages come again
def read_sentences(
    text: str, language: str, spans: Sequence[Span] = (), title: str = "", *, begins: bool = False
) -> tuple[Sentence, ...]:
    """What can be quoted of a passage, in order.

    Headings, questions, header rows, lines of names only and the date of a letter are not quoted by themselves: they
    repeat the question's words, or say who signed, and answer nothing. A sentence that announces a list ("You need:")
    takes the list with it, and the sentence before; so does one that begins with "For example". A short list item is
    quoted whole: its first words often only name it ("2. Visit."). `spans` hold the headings and sheets that the
    passage stands under, `title` is that of its document; in some formats their lines look like sentences ("Subject: …"
    in mails). Where the passage `begins` its document, a first line that stands alone and ends with no stop is its
    title, too.
    """
    bounds = split_sentences(text, language=language)
    not_quoted = _read_headings(text, language, spans, begins=begins)
    name = f": {_plain(title)}"
    examples = load_language(language).questions.examples
    sentences: list[Sentence] = []
    header, previous, last, was_question = "", 0, -1, False
    for position, (start, end) in enumerate(bounds):
        if position <= last:  # of an item
            continue
        last = position
        sentence, begin, finish = text[start:end].strip(), start, end
        is_apart = "\n\n" in text[previous:start]
        if not sentence.startswith("|") or is_apart:
            header = ""
        previous = end
        plain = _plain(sentence)
        is_title = plain in not_quoted or (name != ": " and f": {plain}".endswith(name))
        is_labelled = _ROW.match(sentence) is not None  # "… | Date: ?" asks nothing
        if is_title or (not is_labelled and (HEADING.match(sentence) or _QUESTION.search(sentence))):
            was_question = _QUESTION.search(sentence) is not None
            continue
        if sentence.endswith(":") and not is_labelled:
            begin, finish = _start_with_previous(text, bounds, position), _end_of_list(text, bounds, position)
            sentence = text[begin:finish].strip() if finish > end else ""
        elif fold(sentence).startswith(examples):
            begin = _start_with_previous(text, bounds, position)
            sentence = text[begin:end].strip()
        else:
            last = _last_of_item(text, bounds, position)
            previous = finish = bounds[last][1]
            sentence = text[begin:finish].strip()
        is_row = "\n" not in sentence and sentence.startswith("|")
        if is_row and (rule := _RULE_FOLLOWS.match(text, end)):
            header = f"{_clean(sentence)}\n{rule[1].strip()}"
            continue
        quote = _clean(sentence)
        is_label = (
            (is_apart or not position)
            and not was_question
            and _LEAVES_LINE.match(text, finish)
            and _is_label(sentence, quote)
        )
        was_question = False
        if count_words(quote) >= _MIN_WORDS and not is_label and not _names_only(quote):
            follows = position > 0 and not is_apart and _LIST_ITEM.match(sentence) is None
            place = _Place(begin, finish, last)
            sentences.append(_make_sentence(quote, place, header=header if is_row else "", continues=follows))
    return tuple(sentences)


def _make_sentence(quote: str, place: _Place, *, header: str, continues: bool) -> Sentence:
    return Sentence(
        text=quote,
        folded=fold(quote),
        forms=frozenset(word_forms(quote)),
        ngrams=character_ngrams(quote),
        start=place.start,
        end=place.end,
        position=place.position,
        header=header,
        is_row=bool(header) or " | " in quote,
        continues=continues,
    )


def _is_label(sentence: str, quote: str) -> bool:
    """Return whether a line that stands alone is a heading in plain text, or the date of a letter."""
    if _ENDS.search(quote) or " | " in quote or _LIST_ITEM.match(sentence):
        return False
    if not any(map(str.isdigit, quote)):
        return count_words(quote) <= _LABEL
    place, _, day = quote.rpartition(",")
    return read_day(words(fold(day))) is not None and (not place or _names_only(place))


def _names_only(quote: str) -> bool:
    """Return whether a line is a signature, a page header or a label: names without a figure, and no sentence."""
    if any(map(str.isdigit, quote)) or " | " in quote or _ENDS.search(quote):
        return False
    long = _LONG_WORD.findall(quote)
    return bool(long) and all(word[0].isupper() for word in long)


def _read_headings(text: str, language: str, spans: Sequence[Span], *, begins: bool) -> set[str]:
    """The headings that a passage stands under, as they are compared."""
    headings = {heading for span in spans for heading in span.location.headings}
    found = {_plain(heading) for heading in headings}
    found |= {_plain(one[at:to]) for one in headings for at, to in split_sentences(one, language=language)}
    found |= {_plain(f"Sheet: {span.location.sheet}") for span in spans}
    if begins and (first := _FIRST_LINE.match(text)):
        found.add(_plain(first[1]))
    return found


def _start_with_previous(text: str, bounds: Sequence[tuple[int, int]], position: int) -> int:
    """Where the quote of a list or an example starts: with the sentence before in its paragraph, if it is short."""
    start, _ = bounds[position]
    before, end = bounds[position - 1] if position else (start, start)
    is_prose = not HEADING.match(text, before) and not any(_LIST_ITEM.match(text, at) for at in (before, start))
    return before if is_prose and "\n\n" not in text[end:start] and start - before <= _PREVIOUS_LENGTH else start


def _last_of_item(text: str, bounds: Sequence[tuple[int, int]], first: int) -> int:
    """The number of the last sentence of the list item that begins with `first`; `first` if it is none or too long."""
    start, end = bounds[first]
    if not _ITEM.match(text, start):
        return first
    last = first
    for number, (begin, finish) in enumerate(islice(bounds, first + 1, None), start=first + 1):
        is_other = "\n\n" in text[end:begin] or _LIST_ITEM.match(text, begin) or text[finish - 1] == ":"
        if is_other or HEADING.match(text, begin):
            break
        if finish - start > _ITEM_LENGTH:
            return first
        last, end = number, finish
    return last


def _end_of_list(text: str, bounds: Sequence[tuple[int, int]], announced_by: int) -> int:
    """Where the list or table ends that follows a sentence; the sentence's own end if none follows."""
    start, last = bounds[announced_by]
    for _, end in islice(bounds, announced_by + 1, None):
        if end - start > _LIST_LENGTH or not _ITEM_FOLLOWS.match(text, last):
            break
        last = end
    return last


def _clean(sentence: str) -> str:
    """A sentence on one line and without its list bullet; a list keeps its lines."""
    lines = [" ".join(line.split()) for line in sentence.splitlines() if line.strip()]
    if any(_LIST_ITEM.match(line) for line in lines[1:]):
        return "\n".join(lines)
    return _BULLET.sub("", " ".join(lines)).strip()


def _plain(heading: str) -> str:
    """A heading as it is compared: sentences are split after "5.", so its number is no part of it."""
    return fold(_clean(heading)).strip(" .:")
