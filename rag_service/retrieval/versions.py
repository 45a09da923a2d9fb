"""Which of the found documents are versions of each other, and which of them a question asks for.

An amendment changes what was found: it has other words than a question, and is found far below.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from uuid import UUID

from rag_service.domain import Chunk, DocumentRef, Hit
from rag_service.language.designations import Opening, changes, names_document
from rag_service.language.versions import (
    Asked,
    Edition,
    asked_version,
    numbers_in,
    read_edition,
    without_version,
    years_in,
)


@dataclass(frozen=True, kw_only=True)
class Version:
    """A document that has others beside it which it replaces or is replaced by."""

    document: DocumentRef
    edition: Edition

    @property
    def year(self) -> int | None:
        since = self.document.dated
        return self.edition.year if since is None else since.year

    @property
    def since(self) -> date | None:
        year = self.edition.year
        return self.document.dated or (None if year is None else date(year, 1, 1))


@dataclass(frozen=True, kw_only=True)
class AskedVersions:
    """What a question asks of documents that were found in several versions."""

    others: frozenset[UUID]  # documents that it does not ask for
    compares: bool  # it is about several versions of one document, and `others` holds all other documents
    question: str  # without the years and numbers that only tell the version


def ask_versions(question: str, documents: Sequence[DocumentRef]) -> AskedVersions | None:
    """Which versions a question asks for; None: no document was found in several.

    Args:
        documents: best first, which may be repeated.
    """
    families = _find_families(documents)
    if not families:
        return None
    best = documents[0].id
    of_best = next((family for family in families if any(version.document.id == best for version in family)), ())
    compares = bool(of_best) and asked_version(question) is Asked.SEVERAL
    if compares:
        others = {document.id for document in documents} - {one.document.id for one in _choose(question, of_best)}
    else:
        others = {one.document.id for family in families for one in family if one not in _choose(question, family)}
    rest = without_version(question, {version.year for version in of_best}) if of_best else question
    return AskedVersions(others=frozenset(others), compares=compares, question=rest)


def _find_families(documents: Iterable[DocumentRef]) -> list[tuple[Version, ...]]:
    """The documents that are versions of each other and can be put in order, oldest first."""
    groups: list[list[Version]] = []
    for document in {document.id: document for document in documents}.values():
        edition = read_edition(document.file_name, document.title)
        if not edition.subject:
            continue
        version = Version(document=document, edition=edition)
        for group in groups:
            if group[0].document.corpus_id == document.corpus_id and any(edition.is_of(one.edition) for one in group):
                group.append(version)
                break
        else:
            groups.append([version])
    return list(filter(None, (_in_order(group) for group in groups if len(group) > 1)))


def _in_order(group: Sequence[Version]) -> tuple[Version, ...]:
    """The versions, oldest first, by what tells all apart; empty: nothing does."""
    keys: tuple[Callable[[Version], date | int | None], ...] = (
        lambda version: version.since,
        lambda version: version.edition.number,
        lambda version: version.edition.standing,
    )
    for key in keys:
        told = {key(version) for version in group}
        if None not in told and len(told) == len(group):
            return tuple(sorted(group, key=key))  # type: ignore[arg-type]  # no None is left
    return ()


def _choose(question: str, versions: Sequence[Version]) -> tuple[Version, ...]:
    """Those that a question asks for: by number, by year, by its words, else the one in force."""
    if numbered := [version for version in versions if version.edition.number in numbers_in(question)]:
        return tuple(numbered)
    asked = asked_version(question)
    years = years_in(question)
    if asked is Asked.SEVERAL:
        named = [version for version in versions if version.year in years]
        return tuple(named if len(named) > 1 else versions)
    for year in years:
        same = [version for version in versions if version.year == year]
        before = [version for version in versions if version.year is not None and version.year < year]
        return tuple(same or before[-1:] or versions)
    today = datetime.now(UTC).date()
    current = [version for version in versions if version.since is None or version.since <= today] or versions[:1]
    return tuple(current[:-1] or versions if asked is Asked.EARLIER else current[-1:])


def find_amendments(hits: Sequence[Hit], found: Sequence[Hit]) -> tuple[Hit, ...]:
    """Return the passages among those found that change one of the hits and are not among them."""
    known = {hit.chunk.id for hit in hits}
    others = [hit for hit in found if hit.chunk.id not in known]
    return tuple(hit for hit in others if _changes_any(hit.chunk, [old.chunk for old in hits]))


def amends(chunk: Chunk, old: Chunk) -> bool:
    """Return whether a passage of a later document changes an old one."""
    return _changes_any(chunk, [old])


def _changes_any(chunk: Chunk, chunks: Sequence[Chunk]) -> bool:
    document = chunk.document
    opening = Opening(document.title, chunk.text)
    titles = {old.document.title for old in chunks if _may_change(document, old.document)}
    named = {title for title in titles if names_document(title, opening)}
    return any(
        changes(chunk.text, old.text, title=old.document.title)
        for old in chunks
        if old.document.title in named and _may_change(document, old.document)
    )


def _may_change(document: DocumentRef, old: DocumentRef) -> bool:
    is_older = document.dated is not None and old.dated is not None and document.dated < old.dated
    return document.id != old.id and not is_older
