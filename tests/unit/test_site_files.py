"""What a site says of itself is read line by line: what the standard library raises at costs that line."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from rag_service.sources.pages import read_links
from rag_service.sources.web import parse_robots


@pytest.mark.parametrize(
    "line", ["Crawl-delay: ²", "Disallow: http://[x/", "Request-rate: ²/1", "Crawl-delay: " + "9" * 5000]
)
def test_an_odd_line_of_robots_is_skipped_and_the_others_count(line: str) -> None:
    with capture_logs() as logs:
        robots = parse_robots(["User-agent: *", line, "Disallow: /secret", "Crawl-delay: 2"])
    assert not robots.can_fetch("rag", "https://a.example/secret")
    assert robots.can_fetch("rag", "https://a.example/open")
    assert robots.crawl_delay("rag") == 2
    assert [log["event"] for log in logs] == ["robots_lines_skipped"]


def test_links_before_an_unreadable_declaration_count() -> None:
    with capture_logs() as logs:
        links = read_links(b"<a href='/a'>a</a><![x <a href='/b'>b</a>", "https://a.example/")
    assert links.followed == ["https://a.example/a"]
    assert [log["event"] for log in logs] == ["page_links_cut"]
