"""The columns that words of a question name, in full, in part, or by another word for the same."""

from __future__ import annotations

from dataclasses import replace

from rag_service.tables.asking.planning.match import LITERAL, SAME_MEANING, Match
from rag_service.tables.asking.planning.plans import Mention
from rag_service.tables.asking.planning.question import year_of
from rag_service.tables.headers import EARNED
from rag_service.tables.model import Kind
from rag_service.tables.vocabulary import Word


def free_headers(match: Match) -> None:
    """Words of a column's name ask for no operation beside another: "the lowest average stay" of "Average stay"."""
    asked = match.question.operations
    for header in match.headers:
        forms = frozenset[str]().union(*(word.forms for word in header))
        inner = {name for name, end in asked.items() if match.words[end - 1].forms & forms}
        others = asked.keys() - inner or match.question.superlative
        if inner and others and all(any(one.forms & word.forms for word in match.words) for one in header):
            match.free(inner)
            return


def match_columns(match: Match, *, at_least: int) -> None:
    """Columns all of whose words stand in the question, of `at_least` so many; longer names first."""
    order = sorted(range(len(match.headers)), key=lambda place: -len(match.headers[place]))
    for column in order:
        header = match.headers[column]
        if len(header) < at_least:
            continue
        places = [place for word in header if (place := _place_of(match, word)) is not None]
        if places and len(places) == len(header):
            keys = [word.key for word in header]
            same = tuple(other for other in order if [word.key for word in match.headers[other]] == keys)
            match.mentions.append(Mention(place=min(places), columns=tuple(sorted(same))))
            match.take(places)
            match.name_places.update(places[1:])


def _place_of(match: Match, word: Word) -> int | None:
    return next(
        (place for place, asked in enumerate(match.words) if not match.used[place] and asked.forms & word.forms),
        None,
    )


def match_parts(match: Match) -> None:
    """Words that name a column in part, or by another word for the same: "price" for "Unit price"."""
    for by_concept in (False, True):
        for place, word in enumerate(match.words):
            if match.used[place] or not (word.is_content or word.concepts):
                continue
            columns = tuple(
                column
                for column, header in enumerate(match.headers)
                if any(
                    (word.concepts & other.concepts) if by_concept else (word.forms & other.forms) for other in header
                )
            )
            if by_concept and "date" in word.concepts and not word.is_content:
                columns = _asked_dates(match, columns)
            # "Sold" is no name of a file of sales, but asks for what they brought in.
            means_money = bool(word.concepts & EARNED)
            is_name = by_concept and match.names_document(place, or_caption=True, by_meaning=not means_money)
            by_kind = by_concept and not is_name and word.text not in match.data.last  # "who started last"
            if not columns and by_kind and (columns := match.columns_by_kind(word.concepts)):
                match.is_doubtful = True
            if columns:
                narrower = [set(mention.columns) & set(columns) for mention in match.mentions]
                common = next((both for both in narrower if both), None)
                if common is None:
                    match.mentions.append(Mention(place=place, columns=columns))
                elif len(common) < len(match.mentions[narrower.index(common)].columns):
                    at = narrower.index(common)
                    match.mentions[at] = replace(match.mentions[at], columns=tuple(sorted(common)))
                match.take([place], weight=SAME_MEANING if by_concept else LITERAL)


def _asked_dates(match: Match, columns: tuple[int, ...]) -> tuple[int, ...]:
    """Of several dates, the one that "when" asks for: "Paid on" for "when was it paid"; otherwise it is not certain."""
    dates = match.table.of_kind(Kind.DATE)
    if len(dates) < 2:
        return columns
    said = frozenset[str]().union(*(word.forms for word in match.words if word.is_content))
    named = tuple(column for column in dates if any(word.forms & said for word in match.headers[column]))
    match.is_doubtful |= not named
    return named or columns


def is_year_alone(match: Match, mention: Mention) -> bool:
    """Whether only a year names columns of something of that year: "in 2024" for "Cost 2024"."""
    if year_of(match.words[mention.place]) is None:
        return False
    rest = [word for column in mention.columns for word in match.headers[column] if year_of(word) is None]
    return bool(rest) and not any(asked.is_like(word) for asked in match.words for word in rest)
