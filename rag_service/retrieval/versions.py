"""Which of the found documents are versions of each other, and which of them a question asks for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from uuid import UUID

from rag_service.domain import DocumentRef
from rag_service.language.versions import Asked, Edition, asked_version, numbers_in, read_edition, years_in


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
class Family:
    """The versions of a document, oldest first, and those of them that a question asks for."""

    versions: tuple[Version, ...]
    asked: tuple[Version, ...]

    @property
    def ids(self) -> frozenset[UUID]:
        return frozenset(version.document.id for version in self.versions)

    @property
    def others(self) -> frozenset[UUID]:
        return frozenset(version.document.id for version in self.versions if version not in self.asked)


def find_families(question: str, documents: Iterable[DocumentRef]) -> list[Family]:
    """The documents that are versions of each other, and can be put in order."""
    groups: list[list[Version]] = []
    for document in {document.id: document for document in documents}.values():
        edition = read_edition(document.file_name, document.title)
        if not edition.subject or (edition.is_dated and not edition.number):
            continue
        version = Version(document=document, edition=edition)
        for group in groups:
            if group[0].document.corpus_id == document.corpus_id and any(edition.is_of(one.edition) for one in group):
                group.append(version)
                break
        else:
            groups.append([version])
    ordered = (_in_order(group) for group in groups if len(group) > 1)
    return [Family(versions=versions, asked=_asked(question, versions)) for versions in ordered if versions]


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


def _asked(question: str, versions: Sequence[Version]) -> tuple[Version, ...]:
    """Those that a question asks for: by number, by year, by its words, else the one in force."""
    if numbered := [version for version in versions if version.edition.number in numbers_in(question)]:
        return tuple(numbered)
    asked = asked_version(question)
    if asked is Asked.SEVERAL:
        return tuple(versions)
    for year in years_in(question):
        same = [version for version in versions if version.year == year]
        before = [version for version in versions if version.year is not None and version.year < year]
        return tuple(same or before[-1:] or versions)
    return tuple(versions[:-1] if asked is Asked.EARLIER else versions[-1:])
