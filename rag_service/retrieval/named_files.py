"""Files that a question names: which of them there are, the page or cell it asks for, and what they hold.

Everything is read in the transaction of the search: row-level security leaves only files that the asker may see.
"""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any
from uuid import UUID

from rag_service.domain import Hit, Location, read_spans
from rag_service.language.languages import language_codes, languages_of, load_language
from rag_service.language.words import fold, is_stop_word, words
from rag_service.retrieval.planner import find_extensions
from rag_service.store.database import Connection
from rag_service.store.search.scope import SearchScope
from rag_service.tables.model import StoredTable
from rag_service.tables.storage import find_tables

MAX_FILES = 5  # of which one question gets an overview
_COMPARED_NAMES = 5_000  # the newest files, of which one may be meant by a name that no file has
_NEAR = 3
_NEAR_RATIO = 0.6  # share of common characters from which a name is near
_FIRST_CHUNKS = 3  # of each file, for an overview
_OVERVIEW_CHUNKS = 30
_PLACE_CHUNKS = 20
_MAX_HEADINGS = 200  # read of one file
_EMPTY_BRACKETS = re.compile(r"\(\s*\)")  # in which a file was named


@dataclass(frozen=True, kw_only=True)
class NamedFile:
    id: UUID
    name: str
    language: str | None = None  # ISO 639-1
    title: str = ""


@dataclass(frozen=True, kw_only=True)
class MissingFile:
    """A file that a question names and that is not there for the asker."""

    name: str
    near: tuple[NamedFile, ...] = ()  # files that are there, those with the most similar names first


@dataclass(frozen=True, kw_only=True)
class Place:
    """A place that a question asks for."""

    kind: str  # field of `Location`: page, slide, row, cell
    value: str

    def holds(self, location: Location) -> bool:
        return str(getattr(location, self.kind)).upper() == self.value


@dataclass(frozen=True, kw_only=True)
class Heading:
    """A heading where it stands in the document's stored text."""

    text: str
    path: tuple[str, ...]  # with the headings above it
    start: int
    location: Location


@dataclass(frozen=True, kw_only=True)
class Outline:
    """What a file holds."""

    file: NamedFile
    title: str
    pages: int = 0  # 0: the format has none
    slides: int = 0
    headings: tuple[Heading, ...] = ()
    tables: tuple[StoredTable, ...] = ()


@dataclass(frozen=True, kw_only=True)
class NamedFiles:
    """What a question says of files."""

    found: tuple[NamedFile, ...] = ()  # in the question's order
    missing: tuple[MissingFile, ...] = ()
    rest: str = ""  # the question without names of files
    place: Place | None = None
    outlines: tuple[Outline, ...] = field(default=(), repr=False)  # where only an overview is asked for

    @property
    def document_ids(self) -> tuple[UUID, ...]:
        return tuple(file.id for file in self.found)

    @property
    def told(self) -> tuple[UUID, ...]:
        """Documents whose names an answer may tell, also where it cites none of them."""
        return (*self.document_ids, *(file.id for missing in self.missing for file in missing.near))


async def find_named_files(
    connection: Connection, scope: SearchScope, question: str, names: Sequence[str]
) -> NamedFiles:
    """The files that a question names, of those in scope.

    Args:
        connection: in a transaction of the asker.
        scope: the search without file names.
        question: as asked.
        names: as `find_file_names` gives them.
    """
    by_name = await _find_files(connection, scope, names)
    rest = unicodedata.normalize("NFC", question)
    found: dict[UUID, tuple[int, NamedFile]] = {}
    for name in sorted(by_name, key=len, reverse=True):  # the longest name that fits is meant
        written = r"\s+".join(map(re.escape, name.split()))
        if match := re.search(rf"(?<!\w){written}(?!\w)", rest, re.IGNORECASE):
            found |= {file.id: (match.start(), file) for file in by_name[name]}
            rest = rest[: match.start()] + "\0" * len(match[0]) + rest[match.end() :]  # later names keep their places
    missing = []
    for start, end in find_extensions(rest):
        parts = rest[start:end].lower().split()
        called = [" ".join(parts[first:]) for first in range(len(parts))]
        there = await _compare_names(connection, scope, called)
        if isinstance(there, MissingFile):
            missing.append(there)
        else:
            found |= {file.id: (start, file) for file in there}
        rest = rest[:start] + "\0" * (end - start) + rest[end:]
    ordered = sorted(found.values(), key=lambda item: (item[0], item[1].name))
    rest, place = _take_place(re.sub("\0+", " ", rest))
    return NamedFiles(found=tuple(file for _, file in ordered), missing=tuple(missing), rest=rest, place=place)


async def _find_files(connection: Connection, scope: SearchScope, names: Sequence[str]) -> dict[str, list[NamedFile]]:
    """Files by the name among these that they have, in lower case, with or without their extension."""
    columns = "d.id, d.file_name, d.language, d.title, d.file_key, d.file_stem"
    where = "d.corpus_id = ANY(%(corpora)s) AND (d.expires_at IS NULL OR d.expires_at > now())"
    cursor = await connection.execute(
        f"SELECT {columns} FROM documents d WHERE {where} AND d.file_key = ANY(%(names)s)"  # noqa: S608 - fixed text
        f" UNION SELECT {columns} FROM documents d WHERE {where} AND d.file_stem = ANY(%(names)s)",
        {"corpora": list(scope.corpus_ids), "names": list(names)},
    )
    found: dict[str, list[NamedFile]] = {}
    for document_id, file_name, language, title, key, stem in await cursor.fetchall():
        for name in {key, stem} & set(names):
            found.setdefault(name, []).append(NamedFile(id=document_id, name=file_name, language=language, title=title))
    return found


async def _compare_names(
    connection: Connection, scope: SearchScope, called: Sequence[str]
) -> list[NamedFile] | MissingFile:
    """Files that have one of these names but for accents and blanks; else the name with the nearest ones.

    Args:
        connection: in a transaction of the asker.
        scope: the search without file names.
        called: possible names, longest first; the last has no blank.
    """
    cursor = await connection.execute(
        "SELECT id, file_name, language, title FROM documents WHERE corpus_id = ANY(%s) AND file_name IS NOT NULL"
        " AND (expires_at IS NULL OR expires_at > now()) ORDER BY updated_at DESC LIMIT %s",
        [list(scope.corpus_ids), _COMPARED_NAMES],
    )
    by_fold: dict[str, list[NamedFile]] = {}
    for document_id, file_name, language, title in await cursor.fetchall():
        by_fold.setdefault(_fold_name(file_name), []).append(
            NamedFile(id=document_id, name=file_name, language=language, title=title)
        )
    for name in called:
        if same := by_fold.get(_fold_name(name)):
            return same
    near: dict[str, float] = {}
    files: dict[str, NamedFile] = {}
    for name in called[-4:]:
        for key in difflib.get_close_matches(_fold_name(name), by_fold, _NEAR, _NEAR_RATIO):
            ratio = difflib.SequenceMatcher(None, _fold_name(name), key).ratio()
            for file in by_fold[key]:
                near[file.name] = max(ratio, near.get(file.name, 0.0))
                files.setdefault(file.name, file)
    best = [files[name] for name in sorted(near, key=lambda name: (-near[name], name))[:_NEAR]]
    return MissingFile(name=_without_lead(called), near=tuple(best))


def _without_lead(called: Sequence[str]) -> str:
    """The longest name without words that ask: of "what is in rapport T3.pdf" the "rapport T3.pdf"."""
    for name in called:
        if not any(map(_asks_for_all, words(name.rpartition(" ")[0]))):
            return name
    return called[-1]


def _fold_name(name: str) -> str:
    return re.sub(r"[\s_-]+", " ", fold(name)).strip()


def _take_place(question: str) -> tuple[str, Place | None]:
    """The question without the place that it asks for, and that place."""
    match = _place_pattern().search(fold(question))
    if match is None or len(fold(question)) != len(question):
        return question, None
    kind = next(name for name, value in match.groupdict().items() if value)
    return f"{question[: match.start()]} {question[match.end() :]}", Place(kind=kind, value=match[kind].upper())


@cache
def _place_pattern() -> re.Pattern[str]:
    every = [data.files.places for data in languages_of(None)]
    values = {"page": r"\d{1,6}", "slide": r"\d{1,6}", "row": r"\d{1,7}", "cell": r"[a-z]{1,3}\d{1,7}"}
    return re.compile(
        "|".join(
            rf"\b(?:{'|'.join(sorted({word for places in every for word in places[kind]}))})\.? ?(?P<{kind}>{value})\b"
            for kind, value in values.items()
        )
    )


def asks_overview(files: NamedFiles, language: str) -> bool:
    """Whether a question asks what is in the files, or at the place in them, and for nothing else.

    Before a file in brackets, words of its name or title say which it is: "summary of the Viana audit (x.pdf)".
    """
    rest = files.rest if files.place is None else _sheet_pattern().sub(" ", fold(files.rest))
    asked = [word for word in words(rest) if not is_stop_word(word, language)]
    if _EMPTY_BRACKETS.search(rest):
        called = {word for file in files.found for word in words(_fold_name(f"{file.name} {file.title}"))}
        others = [word for word in asked if word not in called]
        asked = others if any(map(_is_overview, others)) else asked
    return bool(files.found) and all(map(_asks_for_all, asked))


def _asks_for_all(word: str) -> bool:
    """Whether a word adds nothing to the question what is in a file."""
    return _is_overview(word) or any(is_stop_word(word, code) for code in language_codes())


def _is_overview(word: str) -> bool:
    return any(word in load_language(code).files.overview for code in language_codes())


@cache
def _sheet_pattern() -> re.Pattern[str]:
    names = {word for data in languages_of(None) for word in data.files.places["sheet"]}
    return re.compile(rf"\b(?:{'|'.join(sorted(names))}) [\"“«']?[\w-]+")


async def read_within(connection: Connection, files: NamedFiles) -> list[int] | None:
    """The chunks that a question about files is about: those of its place, else the first of each; in order."""
    parameters: dict[str, Any] = {"documents": list(files.document_ids)}
    if files.place is None:
        where, limit = (
            "(c.chunk_index < %(first)s OR c.id IN (SELECT DISTINCT ON (f.document_id, s -> 2 ->> 'sheet') f.id"
            " FROM data_chunks f, jsonb_array_elements(f.spans) s"
            " WHERE f.document_id = ANY(%(documents)s::uuid[]) AND s -> 2 ? 'sheet'"
            " ORDER BY f.document_id, s -> 2 ->> 'sheet', f.chunk_index))",
            _OVERVIEW_CHUNKS,
        )
        parameters["first"] = _FIRST_CHUNKS
    else:
        where, limit = (
            "EXISTS (SELECT FROM jsonb_array_elements(c.spans) s WHERE upper(s -> 2 ->> %(kind)s) = %(value)s)",
            _PLACE_CHUNKS,
        )
        parameters |= {"kind": files.place.kind, "value": files.place.value}
    cursor = await connection.execute(
        f"SELECT c.id FROM data_chunks c WHERE c.document_id = ANY(%(documents)s::uuid[]) AND {where}"  # noqa: S608 - fixed text
        " ORDER BY array_position(%(documents)s::uuid[], c.document_id), c.chunk_index LIMIT %(limit)s",
        {**parameters, "limit": limit},
    )
    return [row[0] for row in await cursor.fetchall()]


async def read_outlines(connection: Connection, files: NamedFiles) -> NamedFiles:
    """The files with what each holds; the first `MAX_FILES`."""
    tables = await find_tables(connection, files.document_ids[:MAX_FILES])
    outlines = []
    for file in files.found[:MAX_FILES]:
        cursor = await connection.execute(
            """SELECT d.title, max((s.span -> 2 ->> 'page')::int), max((s.span -> 2 ->> 'slide')::int)
               FROM documents d LEFT JOIN data_chunks c ON c.document_id = d.id
               LEFT JOIN LATERAL jsonb_array_elements(c.spans) AS s(span) ON true
               WHERE d.id = %s GROUP BY d.title""",
            [file.id],
        )
        title, pages, slides = await cursor.fetchone() or (file.name, None, None)
        outlines.append(
            Outline(
                file=file,
                title=title,
                pages=pages or 0,
                slides=slides or 0,
                headings=await _read_headings(connection, file.id),
                tables=tuple(table for table in tables if table.document_id == file.id),
            )
        )
    return replace(files, outlines=tuple(outlines))


async def _read_headings(connection: Connection, document_id: UUID) -> tuple[Heading, ...]:
    """The headings of a document in order, each where its text stands."""
    cursor = await connection.execute(
        """SELECT h.span, substr(t.text, (h.span ->> 0)::int + 1, 400) FROM (
               SELECT DISTINCT ON (s.span -> 2 -> 'headings') s.span
               FROM data_chunks c, jsonb_array_elements(c.spans) AS s(span)
               WHERE c.document_id = %(document)s AND s.span -> 2 ? 'headings'
               ORDER BY s.span -> 2 -> 'headings', (s.span ->> 0)::int) h
           JOIN document_texts t ON t.document_id = %(document)s
           ORDER BY (h.span ->> 0)::int LIMIT %(limit)s""",
        {"document": document_id, "limit": _MAX_HEADINGS},
    )
    headings = []
    for span, text in await cursor.fetchall():
        (place,) = read_spans([span])
        path = place.location.headings
        at = text.find(path[-1])
        if at >= 0:
            headings.append(Heading(text=path[-1], path=path, start=place.start + at, location=place.location))
    return tuple(headings)


def take_turns(hits: Iterable[Hit], count: int) -> list[Hit]:
    """The first hits with as many of each document as there is room for, in the order given."""
    places: dict[UUID, int] = {}
    ranked = []
    for number, hit in enumerate(hits):
        turn = places[hit.chunk.document.id] = places.get(hit.chunk.document.id, -1) + 1
        ranked.append((turn, number, hit))
    return [hit for _, _, hit in sorted(sorted(ranked, key=lambda item: item[:2])[:count], key=lambda item: item[1])]
