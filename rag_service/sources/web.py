"""A page with the pages that it links to, or a sitemap, as a source of documents."""

from __future__ import annotations

import asyncio
import hashlib
import mimetypes
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import random
from urllib.parse import unquote, urlsplit
from urllib.robotparser import RobotFileParser

import structlog

from rag_service.errors import InputError, SourceError
from rag_service.sources.fetch import USER_AGENT, Fetcher, Network, Page, PageError
from rag_service.sources.pages import Links, host_of, normalise, read_links, read_sitemap
from rag_service.sources.source import Item, Listing
from rag_service.store.documents.synced import SyncedFile, Version

log = structlog.get_logger(__name__)

_HTML = ("text/html", "application/xhtml+xml")
_SITEMAPS = 50  # of one index
_ADDRESSES = 50_000  # of all sitemaps; as many as the protocol lets one of them have
_ROBOTS_BYTES = 500 * 1024  # that are read, as RFC 9309 has it
_DELAY_MAX = 10.0  # seconds between two pages, whatever robots.txt asks for


@dataclass(frozen=True, kw_only=True)
class WebLimits:
    """How far a sync of a site may go."""

    networks: Sequence[Network] = ()  # private ones that are allowed
    depth: int = 0  # links to follow, one after the other, on the host of the target
    pages: int = 1000  # asked for, those that fail included
    max_bytes: int = 10 * 1024**2  # of one page
    changed_bytes: int = 500 * 1024**2  # of all pages that are new or changed: they are kept until they are read
    seconds: float = 3600.0  # of one round
    others_wait: Callable[[], bool] = lambda: False  # then a round takes at most `hurried_seconds`
    hurried_seconds: float = 300.0


class WebSource:
    """The pages of a site, each named by its canonical address."""

    poll_seconds = 300.0

    def __init__(self, url: str, limits: WebLimits):
        """Raises InputError if it is no address of the web."""
        target = normalise(url)
        if target is None:
            raise InputError(f"{url} is not the address of a page.", field="target")
        self.target = target
        self._limits = limits

    async def look(self) -> object:
        """None: a site has to be asked for each page."""
        return None

    async def list(self, known: Mapping[str, SyncedFile], scratch: Path) -> Listing:
        """Fetch what is new or has changed; raises SourceError if the target itself cannot be fetched."""
        async with Fetcher(self._limits.networks, max_bytes=self._limits.max_bytes) as fetcher:
            return await _Crawl(fetcher, self._limits, known, scratch).run(self.target)


@dataclass
class _Crawl:
    """One round through a site."""

    fetcher: Fetcher
    limits: WebLimits
    known: Mapping[str, SyncedFile]
    folder: Path
    _listing: Listing = field(default_factory=Listing, init=False)
    _host: str = field(default="", init=False)
    _robots: RobotFileParser = field(default_factory=RobotFileParser, init=False)
    _kept_bytes: int = field(default=0, init=False)
    _began: float = field(default=0.0, init=False)  # time.monotonic()
    _asked: int = field(default=0, init=False)  # pages asked for, those that fail included
    _seen: set[str] = field(default_factory=set, init=False)  # addresses that were asked for
    _waiting: deque[tuple[str, int]] = field(default_factory=deque, init=False)  # (address, links to follow from there)

    async def run(self, target: str) -> Listing:
        self._host = host_of(target)
        self._began = time.monotonic()
        try:
            await self._read_robots(target)
            self._ask_robots(target)
            page = await self.fetcher.fetch(target)
            if host_of(page.url) != self._host:  # such as from example.org to www.example.org
                self._host = host_of(page.url)
                await self._read_robots(page.url)
            self._ask_robots(page.url)
        except PageError as error:
            raise SourceError(f"{target}: {error}. Nothing was deleted.") from error
        self._seen |= {target, page.url}
        if not await self._queue_sitemap(page):
            self._asked += 1
            await self._take(page, self.limits.depth)
        while self._waiting:
            url, depth = self._waiting.popleft()
            if reason := self._limit_reached():
                self._skip(url, reason, unseen=True)
                break
            await self._visit(url, depth)
        return self._listing

    def _limit_reached(self) -> str:
        """Why no further page is asked for; empty: none of the limits is reached."""
        if self._asked >= self.limits.pages:
            return f"there are more than {self.limits.pages} pages (RAG_SYNC_PAGES)"
        if self._kept_bytes >= self.limits.changed_bytes:
            return f"more than {self.limits.changed_bytes // 1024**2} MB have changed; the next run goes on"
        if self._is_late():
            return f"the site took longer than {self._seconds() / 60:.0f} minutes; the next run goes on"
        return ""

    def _is_late(self) -> bool:
        return time.monotonic() - self._began >= self._seconds()

    def _seconds(self) -> float:
        return self.limits.hurried_seconds if self.limits.others_wait() else self.limits.seconds

    async def _read_robots(self, url: str) -> None:
        """What the site lets robots read. Without a file everything (RFC 9309); raises PageError if it fails."""
        parts = urlsplit(url)
        self._robots = RobotFileParser()
        try:
            page = await self.fetcher.fetch(f"{parts.scheme}://{parts.netloc}/robots.txt")
        except PageError as error:
            if error.passing or error.status is None:
                raise
            self._robots.parse([])
        else:
            lines = (page.body or b"")[:_ROBOTS_BYTES].decode("utf-8", "replace").splitlines()
            self._robots = await asyncio.to_thread(parse_robots, lines)

    async def _queue_sitemap(self, page: Page) -> bool:
        """Whether the page is a sitemap; its pages wait then."""
        sitemap = await asyncio.to_thread(read_sitemap, page.body or b"")
        if sitemap is None:
            return False
        pages = list(sitemap.pages)
        for url in sitemap.sitemaps[:_SITEMAPS]:
            if self._is_late() or len(pages) > _ADDRESSES:
                self._listing.unseen.append("")
                break
            part = await self._fetch(url)
            inner = None if part is None else await asyncio.to_thread(read_sitemap, part.body or b"")
            if inner is None:
                self._listing.unseen.append("")
            else:
                pages += inner.pages
        self._asked = 0  # sitemaps are no pages
        if len(sitemap.sitemaps) > _SITEMAPS:
            self._skip(page.url, f"names more than {_SITEMAPS} sitemaps", unseen=True)
        if len(pages) > _ADDRESSES:
            self._skip(page.url, f"names more than {_ADDRESSES:,} pages", unseen=True)
        await asyncio.to_thread(self._queue, pages[:_ADDRESSES], self.limits.depth)
        return True

    def _queue(self, urls: Sequence[str], depth: int) -> None:
        # New ones first, the others by chance: where rounds end early, all pages are seen in time.
        waiting = [url for url in urls if url not in self._seen]
        for url in sorted(waiting, key=lambda url: (url in self.known, random())):  # noqa: S311
            self._waiting.append((url, depth))
        self._seen.update(urls)

    def _queue_links(self, links: Sequence[str], depth: int) -> None:
        followed = [link for link in links if host_of(link) == self._host]
        room = max(0, _ADDRESSES - len(self._seen))
        self._queue(followed[:room], depth)
        if len(followed) > room:
            self._skip(followed[room], f"there are more than {_ADDRESSES:,} links", unseen=True)

    async def _visit(self, url: str, depth: int) -> None:
        known = self.known.get(url)
        # A page whose links are to be followed is always read: they are not written down.
        etag = known.etag if known is not None and known.stored and depth == 0 else ""
        page = await self._fetch(url, etag=etag, links=depth > 0)
        if page is not None and page.body is None and known is not None:
            self._add(url, known.version, url, None)
        elif page is not None:
            await self._take(page, depth)

    async def _fetch(self, url: str, *, etag: str = "", links: bool = False) -> Page | None:
        """A page of the host; None if it is left aside, which is told."""
        try:
            if host_of(url) != self._host:
                raise PageError(f"is on another host than {self._host}")
            self._ask_robots(url)
            delay = self._robots.crawl_delay(USER_AGENT)
            await asyncio.sleep(min(delay, _DELAY_MAX) if isinstance(delay, int) else 0)
            self._asked += 1
            page = await self.fetcher.fetch(url, host=self._host, etag=etag)
            self._ask_robots(page.url)
            return page
        except PageError as error:
            if error.gone:
                self._listing.gone.append((url, str(error)))
            else:
                self._skip(url, str(error), unseen=links and error.passing)
            return None

    def _ask_robots(self, url: str) -> None:
        if not self._robots.can_fetch(USER_AGENT, url):
            raise PageError("robots.txt of the site forbids it")

    def _skip(self, url: str, reason: str, *, unseen: bool = False) -> None:
        """`unseen`: there may be pages behind it that are known."""
        self._listing.left.append((url, reason))
        if unseen:
            self._listing.unseen.append("")

    async def _take(self, page: Page, depth: int) -> None:
        body = page.body or b""
        url = normalise(page.url) or page.url
        links = Links()
        if page.media_type in _HTML:
            links = await asyncio.to_thread(read_links, body, url)
        name = links.canonical if links.canonical and host_of(links.canonical) == self._host else url
        if all(item.name != name for item in self._listing.items):
            version = Version(size_bytes=len(body), etag=page.etag)
            if self._is_known(name, version, body):
                self._add(name, _noted(version), url, None)
            else:
                file = self.folder / hashlib.sha256(name.encode()).hexdigest()
                await asyncio.to_thread(file.write_bytes, body)
                self._kept_bytes += len(body)
                self._add(name, version, _file_name(url, page.media_type), file)
        if depth > 0:
            await asyncio.to_thread(self._queue_links, links.followed, depth - 1)

    def _is_known(self, name: str, version: Version, body: bytes) -> bool:
        known = self.known.get(name)
        return (
            known is not None
            and known.version == _noted(version)
            and known.content_hash == hashlib.sha256(body).hexdigest()
        )

    def _add(self, name: str, version: Version, file_name: str, file: Path | None) -> None:
        """`file` holds the body; None: it is unchanged, and nobody reads it."""
        read = partial(_read, file, _noted(version))
        self._listing.items.append(Item(name=name, file_name=file_name, version=version, read=read, origin=name))


def parse_robots(lines: Sequence[str]) -> RobotFileParser:
    """Read robots.txt without the lines that the standard library raises at, such as `Crawl-delay: ²`."""
    robots = RobotFileParser()
    try:
        robots.parse(lines)
    except ValueError:
        readable = [line for line in lines if _is_readable(line)]
        log.warning("robots_lines_skipped", count=len(lines) - len(readable))
        robots = RobotFileParser()
        robots.parse(readable)
    return robots


def _is_readable(line: str) -> bool:
    try:
        RobotFileParser().parse(("User-agent: *", line))
    except ValueError:
        return False
    return True


def _noted(version: Version) -> Version:
    """As it is written down. Without an ETag nothing tells that a page is the same: it is compared by content."""
    return version if version.etag else Version(size_bytes=version.size_bytes, mtime_ns=-1)


async def _read(file: Path | None, version: Version) -> tuple[bytes, Version]:
    if file is None:
        raise PageError("was not fetched; sync again", passing=True)
    return await asyncio.to_thread(file.read_bytes), version


def _file_name(url: str, media_type: str) -> str:
    parts = urlsplit(url)
    name = unquote(parts.path).rstrip("/").rpartition("/")[2] or parts.hostname or "page"
    suffix = ".html" if media_type in _HTML else mimetypes.guess_extension(media_type) or ""
    return name if not suffix or name.lower().endswith((suffix, suffix[:-1])) else f"{name}{suffix}"
