"""The parts of a passage that are worth quoting: sentences, rows of tables with their header, whole lists."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import islice

from rag_service.models.extractive.asked_in_document import Part, mark_questions, without_label
from rag_service.text.sentences import split_sentences
from rag_service.text.words import LANGUAGES, fold, is_stop_word, words

_LEAST_WORDS = 3
_YES_NO = frozenset({"yes", "no", "si", "oui", "non"})  # folded; alone they are no quote, and no sentence goes without
_LEAST_TELLING = 2  # of an answer to the document's own question: what citations are verified by
LIST_LENGTH = 900  # characters of a list that is quoted whole
_LIST_ITEM = re.compile(r"[-*+•] |\d{1,2}[.)] |\|")
_ITEM_FOLLOWS = re.compile(rf"\n*+(?:{_LIST_ITEM.pattern})")
_RULE_FOLLOWS = re.compile(r"\s*+(\|[ :|-]*-[ :|-]*)(?:\n|\Z)")
_BULLET = re.compile(r"^(?:[-*+•>] |\d{1,2}[.)] )+")
_LABEL = re.compile(r"[^|:]{1,100}: ")


@dataclass(frozen=True, kw_only=True)
class Unit:
    """A part of a passage in its own words, on one line, or on as many as its list has."""

    text: str
    start: int  # character of the passage
    position: int  # in its passage; the next number is the unit right behind it, with no heading between them
    header: str = ""  # of the Markdown table that it is a row of: names of columns and the rule below them
    question: str = ""  # of the document itself, that it answers: "Q: How often are backups made?"
    follows: int = 0  # sentences between it and that question
    short_answer: str = ""  # "No.", which proves nothing alone: the text is then the question
    table: str | None = None  # what rows of one table of a passage have in common; None: no row

    @property
    def with_header(self) -> str:
        return f"{self.header}\n{self.text}" if self.header else self.text

    @property
    def told(self) -> str:
        """All that is said when it is quoted."""
        return f"{self.with_header} {self.short_answer}".rstrip()


def read_units(text: str, language: str, *, headings: Collection[str], whole_list: bool) -> list[Unit]:
    """What of a passage can be quoted, in order.

    No headings, no questions and no header rows by themselves. A sentence that announces a list ("You need:")
    takes the list with it, and so do a question above it and the heading that is asked for.

    Args:
        headings: those that the passage stands under; in some formats they look like sentences.
        whole_list: whether the question asks for the heading above the passage.
    """
    parts = mark_questions(text, split_sentences(text, language=language))
    not_quoted = {_plain(heading) for heading in headings}
    units: list[Unit] = []
    header, position = "", -1
    taken = previous = 0  # end of the list that a heading took; of the sentence before
    said: Part | None = None  # "No.", which the sentence behind it explains
    for number, part in enumerate(parts):
        start, end = part.start, part.end
        sentence = text[start:end].strip()
        following = parts[number + 1] if number + 1 < len(parts) else None
        if _says_yes_or_no(sentence) and following is not None and "\n\n" not in text[start : following.start]:
            said = part
            continue
        if said is not None and not part.is_question:
            start = said.start
            sentence = text[start:end].strip()
        said = None
        if not sentence.startswith("|") or "\n\n" in text[previous:start]:
            header = ""
        previous = end
        if start < taken:
            continue
        position += 1
        if sentence.startswith("#") or part.is_question or _plain(sentence) in not_quoted:
            continue
        is_asked_list = part.question and not part.follows and not sentence.startswith("|")
        if (is_asked_list or (whole_list and not units)) and _LIST_ITEM.match(sentence):
            taken = _end_of_list(text, parts, number)
            sentence = text[start:taken].strip()
        elif sentence.endswith(":"):
            last = _end_of_list(text, parts, number)
            sentence = text[start:last].strip() if last > end else ""
        is_one_row = "\n" not in sentence and sentence.startswith("|")
        if is_one_row and (rule := _RULE_FOLLOWS.match(text, end)):
            header = f"{_clean(sentence)}\n{rule[1].strip()}"
            continue
        quoted, short_answer = _quote(sentence, part, following)
        if not quoted:
            continue
        units.append(
            Unit(
                text=quoted,
                start=start,
                position=position,
                header=header if is_one_row else "",
                question=part.question,
                follows=part.follows,
                short_answer=short_answer,
                table=_table_of(quoted, header),
            )
        )
    return units


def _quote(sentence: str, part: Part, following: Part | None) -> tuple[str, str]:
    """What is quoted of a sentence or list, "" where it says too little, and the answer that needs its question."""
    cleaned = _clean(sentence)
    if not part.question:
        return (cleaned if len(words(cleaned)) >= _LEAST_WORDS else ""), ""
    cleaned = without_label(cleaned)
    if not cleaned or _is_telling(cleaned):
        return cleaned, ""
    is_whole_answer = not part.follows and (following is None or following.question != part.question)
    question = without_label(_clean(part.question).lstrip("# "))
    return (question, cleaned) if is_whole_answer and _is_telling(question) else ("", "")


def _says_yes_or_no(sentence: str) -> bool:
    return fold(_clean(sentence)).strip(" .,!:¡") in _YES_NO


def _is_telling(quote: str) -> bool:
    told = [word for word in words(quote) if len(word) > 1 and not any(is_stop_word(word, of) for of in LANGUAGES)]
    return len(told) >= _LEAST_TELLING


def _table_of(line: str, header: str) -> str | None:
    """Rows of sheets begin with the same label ("Product: Hex bolt M8 | Stock: 120"), others share their header."""
    if "\n" in line or not (line.startswith("|") or " | " in line):
        return None
    label = None if line.startswith("|") else _LABEL.match(line)
    return label[0] if label else header


def _end_of_list(text: str, parts: Sequence[Part], number: int) -> int:
    """Where the list or table ends that begins with, or right after, the sentence of that number."""
    start, last = parts[number].start, parts[number].end
    for following in islice(parts, number + 1, None):
        if following.end - start > LIST_LENGTH or not _ITEM_FOLLOWS.match(text, last):
            break
        if following.is_question and parts[number].question:  # the next one of a list of questions
            break
        last = following.end
    return last


def _clean(sentence: str) -> str:
    """A sentence in one line and without its list bullet; a list keeps its lines."""
    lines = [" ".join(line.split()) for line in sentence.splitlines() if line.strip()]
    if any(_LIST_ITEM.match(line) for line in lines[1:]):
        return "\n".join(lines)
    return _BULLET.sub("", " ".join(lines)).strip()


def _plain(heading: str) -> str:
    """A heading as it is compared: sentences are split after "5.", so its number is no part of it."""
    return fold(_clean(heading)).strip(" .:")
