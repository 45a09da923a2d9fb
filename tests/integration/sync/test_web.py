"""A corpus is kept equal to pages of a site, and nothing is fetched that must not be."""

from __future__ import annotations

import asyncio
import ipaddress
import os
import socket
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rag_service.errors import InputError, SourceError
from rag_service.sources import fetch, web
from rag_service.sources.fetch import Fetcher, PageError
from rag_service.sources.pages import read_links
from rag_service.sources.sync import sweep_scratch
from rag_service.sources.web import WebLimits, WebSource
from tests.doubles.web_site import Served, WebSite, html, redirect, running_site
from tests.integration.sync.conftest import Desk
from tests.timing import seconds_of

LOOPBACK = [ipaddress.ip_network("127.0.0.0/8")]
METADATA = "http://169.254.169.254/latest/meta-data/"


@pytest.fixture
def site() -> Iterator[WebSite]:
    with running_site() as running:
        yield running


def source(url: str, **limits: Any) -> WebSource:
    return WebSource(url, WebLimits(networks=LOOPBACK, **limits))


def sitemap(*urls: str) -> Served:
    entries = "".join(f"<url><loc>{url}</loc></url>" for url in urls)
    body = f'<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{entries}</urlset>'
    return Served(body=body, headers={"Content-Type": "application/xml"})


async def test_a_sitemap_is_kept_in_step(desk: Desk, site: WebSite) -> None:
    site.pages = {
        "/map.xml": sitemap(*(f"{site.url}/{name}" for name in ("a", "b", "c", "gone")), "http://example.org/x"),
        "/a": html("Apples are red.", etag='"a1"'),
        "/b": html("Bananas are yellow."),
        "/c": html("Cherries are small.", etag='"c1"'),
    }
    first = await desk.sync(source(f"{site.url}/map.xml"))
    assert sorted(first.added) == [f"{site.url}/{name}" for name in "abc"]
    left = dict(first.left)
    assert left == {
        f"{site.url}/gone": "the site returned status 404",
        "http://example.org/x": f"is on another host than {site.url.removeprefix('http://')}",
    }
    assert ("/robots.txt", 404) in site.asked

    embedded = len(desk.embedding.texts)
    site.asked.clear()
    second = await desk.sync(source(f"{site.url}/map.xml"))
    assert (second.unchanged, len(desk.embedding.texts)) == (3, embedded)
    assert {("/a", 304), ("/b", 200), ("/c", 304)} <= set(site.asked)

    site.pages["/a"] = html("Apples are green.", etag='"a2"')
    del site.pages["/b"]
    site.pages["/c"] = Served(status=503)
    third = await desk.sync(source(f"{site.url}/map.xml"))
    assert (third.changed, third.deleted) == ([f"{site.url}/a"], [f"{site.url}/b"])
    assert dict(third.left)[f"{site.url}/c"] == "the site returned status 503"  # and its document stays
    assert set(desk.stored()) == {f"{site.url}/a", f"{site.url}/c"}
    with desk.house.owner() as owner:
        assert owner.execute("SELECT source FROM rag.documents WHERE name = %s", [f"{site.url}/a"]).fetchall() == [
            (f"{site.url}/a",)
        ]


async def test_links_are_followed_to_a_depth_on_the_host(desk: Desk, site: WebSite) -> None:
    links = '<a href="one">1</a><a href="/one#part">1</a><a href="/secret">s</a><a href="http://example.org/">o</a>'
    site.pages = {
        "/": html(f"Start. {links}"),
        "/one": html('One. <a href="/two">2</a>', head='<link rel="canonical" href="/uno">'),
        "/two": html('Two. <a href="/">back</a><a href="/three">3</a>'),
        "/three": html("Three."),
        "/robots.txt": Served(body="User-agent: *\nDisallow: /secret"),
        "/secret": html("Secret."),
    }
    report = await desk.sync(source(site.url, depth=2))
    assert sorted(report.added) == [f"{site.url}{path}" for path in ("/", "/two", "/uno")]
    assert dict(report.left) == {f"{site.url}/secret": "robots.txt of the site forbids it"}
    assert [path for path, _ in site.asked].count("/one") == 1
    site.pages["/one"] = Served(status=500)  # nobody knows now what it links to
    assert (await desk.sync(source(site.url, depth=2))).deleted == []
    assert (await desk.sync(source(site.url), delete=True)).deleted == [f"{site.url}/two", f"{site.url}/uno"]


async def test_a_target_that_fails_deletes_nothing(desk: Desk, site: WebSite) -> None:
    site.pages = {"/": html("Start."), "/robots.txt": Served(body="")}
    await desk.sync(source(site.url))
    for robots, page in ((Served(), Served(status=404)), (Served(status=500), html("Start.")),
                         (Served(body="User-agent: *\nDisallow: /"), html("Start."))):  # fmt: skip
        site.pages = {"/": page, "/robots.txt": robots}
        with pytest.raises(SourceError, match="Nothing was deleted"):
            await desk.sync(source(site.url), delete=True)
    assert len(desk.stored()) == 1
    for url in ("http://user:password@example.org/", "http://", "https:///x"):
        with pytest.raises(InputError):
            source(url)


async def test_pages_have_a_limit(desk: Desk, site: WebSite) -> None:
    names = [str(number) for number in range(5)]
    site.pages = {f"/{name}": html(f"Page {name}.") for name in names}
    site.pages["/map.xml"] = sitemap(*(f"{site.url}/{name}" for name in names))
    await desk.sync(source(f"{site.url}/map.xml"))
    report = await desk.sync(source(f"{site.url}/map.xml", pages=3))
    assert (report.deleted, len(report.left)) == ([], 1)


async def test_what_one_run_keeps_is_bounded_and_the_next_run_goes_on(desk: Desk, site: WebSite) -> None:
    names = [str(number) for number in range(4)]
    site.pages = {f"/{name}": html(f"Page {name}. " + "x" * 1_000) for name in names}
    site.pages["/map.xml"] = sitemap(*(f"{site.url}/{name}" for name in names))
    runs = [await desk.sync(source(f"{site.url}/map.xml", changed_bytes=1_500)) for _ in range(3)]
    assert [(len(run.added), len(run.left), run.deleted) for run in runs] == [(2, 1, []), (2, 1, []), (0, 0, [])]
    assert "next run goes on" in runs[0].left[0][1]
    assert len(desk.stored()) == 4


async def test_a_slow_site_is_left_for_the_next_run(desk: Desk, site: WebSite) -> None:
    site.pages = {"/": html('Start. <a href="/one">1</a>'), "/one": html("One.")}
    await desk.sync(source(site.url, depth=1))
    alone = await desk.sync(source(site.url, depth=1, hurried_seconds=0.0))
    assert (alone.unchanged, alone.left) == (2, [])
    for limit in ({"seconds": 0.0}, {"hurried_seconds": 0.0, "others_wait": lambda: True}):
        report = await desk.sync(source(site.url, depth=1, **limit))
        assert (report.deleted, [reason for _, reason in report.left]) == (
            [], ["the site took longer than 0 minutes; the next run goes on"],
        )  # fmt: skip


def test_temporary_folders_of_killed_processes_are_swept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    ended = subprocess.Popen(["true"])
    ended.wait()
    left, ours, foreign = (tmp_path / f"rag-{name}" for name in (f"sync-{ended.pid}-a", f"sync-{os.getpid()}-b", "x"))
    for folder in (left, ours, foreign):
        folder.mkdir()
        (folder / "page").touch()
    sweep_scratch()
    assert sorted(tmp_path.iterdir()) == sorted([ours, foreign])


async def test_private_addresses_are_refused_by_default(desk: Desk, site: WebSite) -> None:
    site.pages = {"/": html("Inside.")}
    port = site.url.rpartition(":")[2]
    for host in ("127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]"):
        with pytest.raises(SourceError, match=r"not on the public internet|not known"):
            await desk.sync(WebSource(f"http://{host}:{port}/", WebLimits()))
    assert site.asked == []


@pytest.mark.parametrize("to", [METADATA, "http://[fd00:ec2::254]/", "file:///etc/passwd", "http://10.0.0.1/"])
async def test_redirects_are_checked_like_targets(site: WebSite, to: str) -> None:
    site.pages = {"/": redirect(to), "/hop": redirect("/")}
    async with Fetcher(LOOPBACK, max_bytes=1000) as fetcher:
        for path in ("/", "/hop"):
            with pytest.raises(PageError, match=r"not on the public internet|not a web address"):
                await fetcher.fetch(f"{site.url}{path}")
    assert {path for path, _ in site.asked} == {"/", "/hop"}


@pytest.mark.parametrize("to", ["http://xn--/", "http://[::1"])
async def test_redirects_to_what_is_no_address_fail_for_that_page_alone(site: WebSite, to: str) -> None:
    site.pages = {"/": redirect(to)}
    async with Fetcher(LOOPBACK, max_bytes=1000) as fetcher:
        with pytest.raises(PageError, match=r"is not a valid address|cannot be reached"):
            await fetcher.fetch(site.url)


async def test_a_public_site_cannot_lead_inside(site: WebSite) -> None:
    """The site itself is allowed, as a public one is; 127.0.0.1 under the default rules is not."""
    site.pages = {"/": redirect(site.url.replace("127.0.0.1", "127.0.0.2") + "/inside"), "/inside": html("Inside.")}
    only = [ipaddress.ip_network("127.0.0.1/32")]
    async with Fetcher(only, max_bytes=1000) as fetcher:
        with pytest.raises(PageError, match="not on the public internet"):
            await fetcher.fetch(site.url)
    assert [path for path, _ in site.asked] == ["/"]


async def test_every_address_of_a_name_is_checked_and_the_checked_one_is_used(
    site: WebSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.pages = {"/": html("Here.")}
    port = int(site.url.rpartition(":")[2])
    answers = [["127.0.0.1"], ["127.0.0.1", "10.0.0.1"], ["169.254.169.254"]]
    asked = []

    def look_up(host: str, *_: Any, **__: Any) -> list[Any]:
        asked.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 0)) for address in answers.pop(0)]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    async with Fetcher(LOOPBACK, max_bytes=1000) as fetcher:
        page = await fetcher.fetch(f"http://pages.example:{port}/")
        assert (page.url, b"Here." in (page.body or b"")) == (f"http://pages.example:{port}/", True)
        assert asked == ["pages.example"]  # once: the name cannot mean another address for the connection
        for _ in range(2):
            with pytest.raises(PageError, match="not on the public internet"):
                await fetcher.fetch(f"http://pages.example:{port}/")
    assert len(site.asked) == 1


async def test_loops_endless_bodies_and_slow_sites_end(site: WebSite, monkeypatch: pytest.MonkeyPatch) -> None:
    site.pages = {
        "/loop": redirect("/loop"),
        "/endless": Served(endless=True),
        "/packed": Served(body=b"\x1f\x8b" + bytes(100), headers={"Content-Encoding": "gzip"}),
    }
    async with Fetcher(LOOPBACK, max_bytes=1024**2) as fetcher:
        with pytest.raises(PageError, match="redirects more than 5 times"):
            await fetcher.fetch(f"{site.url}/loop")
        assert len(site.asked) == 6
        with pytest.raises(PageError, match="larger than 1 MB"):
            await fetcher.fetch(f"{site.url}/endless")
        assert site.sent < 64 * 1024**2
        with pytest.raises(PageError, match="compressed"):
            await fetcher.fetch(f"{site.url}/packed")
        monkeypatch.setattr(fetch, "_PAGE_SECONDS", 0.3)
    async with Fetcher(LOOPBACK, max_bytes=1024**4) as fetcher:
        with pytest.raises(PageError, match="too long"):
            await fetcher.fetch(f"{site.url}/endless")


async def test_a_sitemap_with_entities_is_no_sitemap(desk: Desk, site: WebSite) -> None:
    bomb = '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "aaaa">]><urlset><url><loc>&a;</loc></url></urlset>'
    site.pages = {"/map.xml": Served(body=bomb, headers={"Content-Type": "application/xml"})}
    await desk.sync(source(f"{site.url}/map.xml"))
    assert [path for path, _ in site.asked] == ["/robots.txt", "/map.xml"]
    assert "<loc>aaaa" not in "".join(desk.stored().values())


async def test_pages_that_fail_count_as_pages(site: WebSite) -> None:
    site.pages = {"/map.xml": sitemap(*(f"{site.url}/missing-{number}" for number in range(200)))}
    listing = await source(f"{site.url}/map.xml", pages=20).list({}, Path("unused"))
    assert sum(path.startswith("/missing") for path, _ in site.asked) == 20
    assert any("more than 20 pages" in reason for _, reason in listing.left)


async def test_a_name_that_does_not_exist_is_refused_like_one_that_is_private(monkeypatch: pytest.MonkeyPatch) -> None:
    async def resolve(host: str, *_: Any, **__: Any) -> list[Any]:
        if host == "unknown.example":
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("10.0.0.1", 0))]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", resolve)
    told = set()
    for host in ("unknown.example", "private.example"):
        async with Fetcher([], max_bytes=1000) as fetcher:
            with pytest.raises(PageError) as refused:
                await fetcher.fetch(f"http://{host}/")
        told.add(str(refused.value).replace(host, "HOST"))
    assert len(told) == 1


def test_only_the_first_base_of_a_page_counts() -> None:
    links = read_links(b'<base href="/a/"><base href="/b/"><a href="c">C</a>', "https://example.org/")
    assert links.followed == ["https://example.org/a/c"]


@pytest.mark.slow
def test_a_page_of_nothing_but_bases_is_read_in_linear_time() -> None:
    body = b'<base href="a/"><a href="x">x</a>' * 20_000
    seconds = seconds_of(lambda: read_links(body, "https://example.org/"))
    assert seconds < 5  # 40 s for half of it, when each base went on from the one before


async def test_what_a_site_sends_is_parsed_outside_the_event_loop(
    site: WebSite, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Ten megabytes of robots.txt or sitemap would stop everybody's requests for seconds."""
    parsed: dict[str, bool] = {}

    def watched(name: str, parse: Any) -> Any:
        def parse_and_note(*arguments: Any) -> Any:
            parsed[name] = threading.current_thread() is not threading.main_thread()
            return parse(*arguments)

        return parse_and_note

    for owner, name in ((web, "read_sitemap"), (web, "read_links"), (web.RobotFileParser, "parse")):
        monkeypatch.setattr(owner, name, watched(name, getattr(owner, name)))
    site.pages = {
        "/robots.txt": Served(body="User-agent: *\nDisallow: /no", headers={"Content-Type": "text/plain"}),
        "/map.xml": sitemap(f"{site.url}/a"),
        "/": html('Start. <a href="/a">a</a>'),
        "/a": html("Apples are red."),
    }
    await source(f"{site.url}/map.xml").list({}, tmp_path)
    await source(f"{site.url}/", depth=1).list({}, tmp_path)
    assert parsed == {"read_sitemap": True, "read_links": True, "parse": True}
