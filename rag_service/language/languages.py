"""The languages with word lists: one file each, `data/<ISO 639-1 code>.toml`, with every word list the service uses.

A new language is a new file there, with prompts, messages and page texts; no Python changes. A language may also have
prompts, messages and page texts alone, or only a name (`names.toml`): it is recognised and answered in.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from rag_service.errors import DefinitionError

FALLBACK_LANGUAGE = "en"
_FOLDER = Path(__file__).parent / "data"
_NAMES = Path(__file__).parent / "names.toml"


class Words(frozenset[str]):
    """Words, in the file one text with spaces between them."""


Rules = tuple[tuple[str, str], ...]  # (regular expression, replacement)


@dataclass(frozen=True, kw_only=True)
class Detection:
    """What tells the language of a text."""

    frequent_words: Words  # indexed, beside the stop words
    pieces: tuple[str, ...]  # letters and pieces of words, with accents
    accents: str  # accented letters
    word_endings: str  # regular expression; empty: none are typical
    typical_words: Words


@dataclass(frozen=True, kw_only=True)
class Stems:
    """What the Snowball stemmer does not know."""

    irregular_forms: str  # "base form form, base form": forms replaced before stemming
    irregular_stems: Mapping[str, str]  # word → its stem
    accented_endings: Rules
    stem_corrections: Rules
    short_plural: str  # regular expression of stems that still end in a plural "s"; empty: none


@dataclass(frozen=True, kw_only=True)
class Sentences:
    """What decides whether a full stop ends a sentence. Accents and, for the starters, capitals matter."""

    abbreviations: Words
    abbreviations_before_numbers: Words
    abbreviations_at_end: Words
    sentence_starters: Words
    named_by_letter: Words


@dataclass(frozen=True, kw_only=True)
class Proof:
    """Words that decide whether two sentences say the same."""

    function_words: Words
    negations: Words
    months: tuple[Words, ...]  # January first
    weekdays: tuple[Words, ...]  # Monday first
    numbers: Mapping[str, Words]  # digits → number words
    one: Words
    fractions: Words
    units: Mapping[str, Words]  # canonical unit → its forms
    opposites: Mapping[str, tuple[Words, Words]]  # pair → its two sides
    lead_ins: tuple[str, ...]  # "however": what may stand before a claim
    source_prepositions: tuple[str, ...]  # "according to" (the document)
    source_articles: Words
    source_nouns: Words  # beginnings
    conditions: Words  # "unless": what binds the rest of its sentence
    reporting: Words  # "states": what may stand around a quotation and adds nothing to it
    restriction: str  # regular expression of a negation that only restricts: "ne … que"
    refusals: tuple[str, ...]  # regular expressions of folded sentences


@dataclass(frozen=True, kw_only=True)
class Questions:
    """How questions are asked. Phrases are words with single spaces."""

    empty_phrases: tuple[str, ...]  # "how long": phrases that ask and say nothing
    follow_ups: tuple[str, ...]  # "what about": beginnings of a question that goes on from the one before
    references: Words  # "it", "that": words for what was named before
    conjunctions: Words  # "and": as first word they go on from the question before
    joins: Words  # "and", "or": what coordinates the parts of a question
    asks: Words  # "what", "how": question words, with their accents
    compares: Words  # "compare", "difference", with their accents
    compares_with: Words  # "with": joins what is compared
    examples: tuple[str, ...]  # "for example": how a sentence begins that illustrates the one before
    asks_price: str  # regular expression of folded questions
    asks_number: str  # likewise
    asks_hour: str  # likewise
    gives_hour: str  # regular expression of folded sentences: an hour in words, or after one
    asks_person: str  # likewise
    asks_name: str  # likewise, who somebody is: "who was the architect?"
    gives_agent: str  # regular expression of folded sentences: what stands before the agent of a passive
    asks_reason: str
    gives_reason: str
    place_prepositions: tuple[str, ...]  # "in", "in the": before the name of a place


@dataclass(frozen=True, kw_only=True)
class FileWords:
    """How a question speaks of a file, and how the service describes one."""

    words: Words  # "file"
    overview: Words  # "contain", "summary": a question with no other words asks what is in a file
    places: Mapping[str, Words]  # page, slide, sheet, row, cell: words before its number or name
    # quoted, colon, title, pages, …, begins; ask_cell: a question with {column} and {row}
    labels: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class MailWords:
    """Words of the lines that mail programs write above a message within a message, folded, without the colon."""

    sender: tuple[str, ...]
    sent: tuple[str, ...]
    subject: tuple[str, ...]
    recipients: tuple[str, ...]  # also of copies and replies
    forwarded: tuple[str, ...]  # in the rule above all these
    wrote: tuple[str, ...]  # "On 3 May 2026, Ana wrote:"
    wrote_on: tuple[str, ...]  # before such a date
    header: str  # what these lines tell, which few of them say


@dataclass(frozen=True, kw_only=True)
class SmallTalk:
    """Messages that ask for nothing, and what the service says to them."""

    fillers: Words  # may stand between the phrases
    phrases: Mapping[str, tuple[str, ...]]  # greeting, wellbeing, thanks, farewell, assent
    replies: Mapping[str, str]  # likewise


@dataclass(frozen=True, kw_only=True)
class Injection:
    """How a text addresses a language model: regular expressions of folded text. See en.toml for the placeholders."""

    role_lines: str  # "system": roles at the beginning of a line, with accents
    roles: str
    prompts: str  # "instructions": what a model was told
    say: str  # "answer with": what it is told to do
    addresses: tuple[str, ...]
    triggers: tuple[str, ...]  # every text that `addresses` find contains one of these of all languages


@dataclass(frozen=True, kw_only=True)
class KnowledgeBase:
    """Words of a governed knowledge base: its guardrails and its tables of required data."""

    never: str  # regular expression: how a guardrail begins that forbids
    always: str  # likewise, one that asks to mention
    joiners: Words  # between two phrases of one guardrail
    yes: Words
    columns: Mapping[str, tuple[str, ...]]  # field, group, description, why, type, required → its heads
    types: Mapping[str, Words]  # text, currency, date, boolean, number → its names


@dataclass(frozen=True, kw_only=True)
class FigureWords:
    """How a question asks for a figure of a report: net income, and whether it grew."""

    loss: tuple[str, ...]  # "lose money": whether the net income is negative
    profit: tuple[str, ...]
    rise: Words
    fall: Words
    change: Words
    never: Words  # questions with these ask for no figure: "who", "which"
    asks_whether: Words  # that begin a question for yes or no
    filler: Words  # that say nothing about which figure: "spend", "report"
    light: Words  # of labels: "total"
    half_light: Words  # likewise, but a label without them is nearer: "net"
    qualifiers: Words  # stop words that make another figure of a label: "other", "before"
    loses: Words  # that make a label one of losses
    gains: Words
    durations: tuple[Words, ...]  # of columns and questions: a quarter, half a year, nine months, a year
    statements: tuple[str, ...]  # titles of the primary statements


@dataclass(frozen=True, kw_only=True)
class TableWords:
    """How a question asks for something that is computed from a table, and how the answer says it."""

    phrases: Mapping[str, tuple[str, ...]]  # count, sum, mean, more, between, …: what asks for an operation
    most: Words  # "most": turns an adjective into a superlative
    least: Words  # "least": turns it round
    than: Words  # after a comparative, before its number
    superlatives: Mapping[str, Mapping[str, Words]]  # high, low → concept → "cheapest"
    adjectives: Mapping[str, Mapping[str, Words]]  # likewise, after `most` or `least`: "expensive"
    comparatives: Mapping[str, Mapping[str, Words]]  # likewise, before `than`: "cheaper"
    concepts: Mapping[str, Words]  # price, weight, …: words for the same thing; the keys are those of every language
    filler: Words  # that ask for nothing: "please", "list"
    before_nouns: Words  # articles and prepositions
    which: Words  # before the noun that names the rows: "which sites", "how many" apart
    verbs: Words  # common ones, which name no column
    first: Words  # by date, where a column of dates is named: "who joined first"
    last: Words
    next: Words  # the row behind a named one, with `previous`
    previous: Words
    same: Words  # what two rows share: "the same developer as"
    ordinals: tuple[str, ...]  # "first" and its forms, "second", …
    including: Words  # "with": a total with VAT is not the total of the VAT
    rows: Words  # "rows", "entries"
    different: Words  # values that are counted once
    totals: Words  # that name a row of totals
    codes: Words  # in the name of a column of numbers that are no figures: "Order no."
    notes: Words  # above the numbers of the notes, in statements
    periods: Words  # in names of columns, beside months and years: "Three months ended"
    scales: Mapping[str, Words]  # factor → words: 1000000 → "millions"
    yes: Words  # in cells, with `no`
    no: Words
    decimal: str  # separators of numbers
    thousands: str
    signs_before: str  # currencies whose sign stands before the number
    figures: FigureWords
    comparison: Mapping[str, tuple[str, ...]]  # compare, missing, both: what asks to compare two files
    answers: Mapping[str, str]  # sentences with {placeholders}


@dataclass(frozen=True, kw_only=True)
class VersionWords:
    """How people tell the versions of a document apart."""

    holds_from: tuple[str, ...]  # "in force from": before the date since when a document holds
    old: Words  # in names of files
    new: Words  # likewise: "new", "final", "current"
    name_words: Words  # likewise, words that say nothing: "version", "copy", "for"
    earlier: str  # regular expression of a folded question that asks for a version before the one in force
    both: str  # likewise, of one that asks for several


@dataclass(frozen=True, kw_only=True)
class Texts:
    """What the service puts into the text of a reply; its sentences are in prompts/messages.yaml."""

    link_removed: str  # no brackets that Markdown knows: what follows must not turn it into a link


@dataclass(frozen=True, kw_only=True)
class Language:
    """All data of a language."""

    name: str  # in English
    stemmer: str  # Snowball algorithm
    stop_words: Words
    detection: Detection
    stems: Stems
    sentences: Sentences
    proof: Proof
    questions: Questions
    files: FileWords
    mail: MailWords
    small_talk: SmallTalk
    injection: Injection
    knowledge_base: KnowledgeBase
    tables: TableWords
    versions: VersionWords
    texts: Texts


@cache
def language_codes() -> tuple[str, ...]:
    """ISO 639-1 codes of the languages with word lists, sorted."""
    return tuple(sorted(file.stem for file in _FOLDER.glob("*.toml")))


@cache
def language_names() -> Mapping[str, str]:
    """ISO 639-1 code → English name, of every language that is recognised."""
    return tomllib.loads(_NAMES.read_text(encoding="utf-8"))


def language_name(code: str) -> str:
    """English name of a language, as a prompt asks for it."""
    return language_names().get(code, language_names()[FALLBACK_LANGUAGE])


def load_language(code: str | None) -> Language:
    """The data of a language; of English where there is none. Raises DefinitionError if its file is incomplete."""
    return _load(code if code is not None and code in language_codes() else FALLBACK_LANGUAGE)


@cache
def _load(code: str) -> Language:
    return read_language(_FOLDER / f"{code}.toml")


def read_language(file: Path) -> Language:
    """Read and check a language file. Raises DefinitionError with the file and the entry that is missing or wrong."""
    try:
        return msgspec.convert(tomllib.loads(file.read_text(encoding="utf-8")), Language, dec_hook=_decode)
    except (OSError, tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise DefinitionError(f"{file}: {error}") from error


def quote_text(text: str, language: str) -> str:
    """A text in the quotation marks of a language; in English ones where it has no word lists."""
    return load_language(language).files.labels["quoted"].replace("{text}", text)


def languages_of(code: str | None) -> tuple[Language, ...]:
    """The language of that code alone; all of them where it is None or not supported."""
    return tuple(map(load_language, (code,) if code in language_codes() else language_codes()))


def union_of(groups: Iterable[frozenset[str]]) -> frozenset[str]:
    """The words of all groups, such as the same group of several languages."""
    return frozenset().union(*groups)


def texts_in(code: str | None) -> Texts:
    """What the service says in a language, else in English."""
    return load_language(code).texts


def check_language(code: str) -> str:
    """The code, for validators; ValueError if it is not supported."""
    if code not in language_codes():
        raise ValueError(f"must be one of {', '.join(language_codes())}")
    return code


def _decode(kind: type, value: Any) -> object:
    if kind is not Words or not isinstance(value, str):
        raise ValueError(f"Expected words in one text, got {value!r}")
    return Words(value.split())
