"""What a page says of other pages: links, its canonical address, the entries of a sitemap."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser
from urllib.parse import urljoin, urlsplit, urlunsplit
from xml.etree.ElementTree import ParseError

import structlog
from defusedxml import DefusedXmlException
from defusedxml.ElementTree import fromstring

log = structlog.get_logger(__name__)

_PORTS = {"http": 80, "https": 443}


@dataclass(kw_only=True)
class Links:
    """The addresses in a page, absolute and normalised."""

    canonical: str | None = None
    followed: list[str] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Sitemap:
    """A sitemap: addresses of pages, or of further sitemaps."""

    pages: tuple[str, ...] = ()
    sitemaps: tuple[str, ...] = ()


def normalise(url: str) -> str | None:
    """An address of the web in one spelling, without fragment; None if it is none."""
    try:
        parts = urlsplit(url.strip())
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    if parts.scheme not in _PORTS or not host or parts.username is not None:
        return None
    shown = f"[{host}]" if ":" in host else host
    netloc = shown if port in (None, _PORTS[parts.scheme]) else f"{shown}:{port}"
    return urlunsplit((parts.scheme, netloc, parts.path or "/", parts.query, ""))


def host_of(url: str) -> str:
    """Host and port of a normalised address."""
    return urlsplit(url).netloc


def read_links(body: bytes, url: str) -> Links:
    """The links of an HTML page, except those that its author marks `nofollow`."""
    reader = _LinkReader(url)
    try:
        reader.feed(body.decode("utf-8", "replace"))
    except (AssertionError, ValueError) as error:  # html.parser at `<![x`: the links before it count
        log.warning("page_links_cut", address=url, exc_info=error)
    reader.links.followed = list(dict.fromkeys(reader.links.followed))
    return reader.links


def read_sitemap(body: bytes) -> Sitemap | None:
    """A sitemap of sitemaps.org; None if it is something else."""
    if b"<urlset" not in body[:2000] and b"<sitemapindex" not in body[:2000]:
        return None
    try:
        root = fromstring(body, forbid_dtd=True)
    except (ParseError, DefusedXmlException, ValueError):
        return None
    kind = root.tag.rpartition("}")[2]
    places = [normalise(entry.text or "") for entry in root.iterfind("{*}*/{*}loc")]
    found = tuple(dict.fromkeys(place for place in places if place is not None))
    return Sitemap(pages=found) if kind == "urlset" else Sitemap(sitemaps=found)


class _LinkReader(HTMLParser):
    def __init__(self, url: str):
        super().__init__()
        self._base = url
        self._has_base = False
        self.links = Links()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if "href" not in given or tag not in ("a", "link", "base") or (tag == "base" and self._has_base):
            return
        try:
            target = normalise(urljoin(self._base, given["href"]))
        except ValueError:
            return
        roles = given.get("rel", "").lower().split()
        if target is None:
            return
        if tag == "base":  # only the first one counts (HTML standard), and a chain of them would take quadratic time
            self._base, self._has_base = target, True
        elif tag == "link" and "canonical" in roles:
            self.links.canonical = target
        elif tag == "a" and "nofollow" not in roles:
            self.links.followed.append(target)
