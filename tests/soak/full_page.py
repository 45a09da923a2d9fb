"""The page over a full database, in Chromium: `python -m tests.soak.full_page [documents]`; 1 if a bar fails.

One user's 500 conversations, one of them with 2,000 messages, and 5,000 documents, besides many users, keys, agents,
corpora, sources and comments. Bar: every view shows its content within one second of the navigation.
"""

from __future__ import annotations

import asyncio
import logging
import statistics
import sys
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click
import psycopg
import structlog
from playwright.sync_api import sync_playwright

from rag_service.store.embedded import start_embedded_server
from tests.conftest import make_template
from tests.integration.web.browser import WIDE, find_chromium
from tests.integration.web.real import Person, running_service

if TYPE_CHECKING:
    from playwright.sync_api import Page

DOCUMENTS, MOST_MILLISECONDS, TIMES = 5_000, 1_000, 5
LONG = uuid.UUID(int=24)  # the conversation of 2,000 messages
VIEWS = {  # by address: what is there once the view is
    "ask": "#examples .example >> nth=0",
    f"ask/{LONG}": ".turn >> text=question 1000",
    "conversations": "#conversations-list .row >> nth=49",
    "documents": "#documents-list .row >> nth=49",
    "manage/corpora": "#manage-list .row >> nth=49",
    "manage/sources": "#manage-list .row >> nth=49",
    "manage/agents": "#manage-list .row >> nth=49",
    "manage/users": "#manage-list .row >> nth=49",
    "manage/keys": "#manage-list .row >> nth=49",
    "manage/retrieval": "#retrieval-corpus:has(option:nth-child(50))",
    "manage/feedback": "#manage-list .row >> nth=49",
}
STEPS = {  # on a view that is open: an action, and what is there afterwards
    "conversations, a search": ("conversations", "#conversations-search", "#conversations-list .row:has-text('487')"),
    "documents, a search": ("documents", "#documents-search", "#documents-list .row:has-text('487')"),
}
FILL = """
CREATE TEMP TABLE corpus AS SELECT id FROM rag.corpora WHERE name = 'documents';
INSERT INTO rag.corpora (name, kind, index_name, shared)
    SELECT 'corpus ' || n, 'global', 'general', true FROM generate_series(1, 200) n;
INSERT INTO rag.users (name, role) SELECT 'user ' || n, 'user' FROM generate_series(1, 1000) n;
INSERT INTO rag.agents (name) SELECT 'agent ' || n FROM generate_series(1, 100) n;
INSERT INTO rag.api_keys (user_id, name, key_hash, prefix, scopes)
    SELECT u.id, u.name, sha256(u.name::bytea), 'rag_', '{read}' FROM rag.users u;
INSERT INTO rag.sources (corpus_id, user_id, target, every_seconds, next_run_at)
    SELECT c.id, %(user)s, 'https://example.org/' || c.name, 86400, now() + interval '1 day' FROM rag.corpora c;
INSERT INTO rag.documents (corpus_id, name, title, file_name, content_hash, fingerprint, chunk_count, size_bytes,
                           language, tags, created_at)
    SELECT corpus.id, 'reports/file ' || n || '.md', 'Report ' || n, 'file ' || n || '.md', md5(n::text), 'f', 4,
           n * 100, 'en', ARRAY['year ' || n %% 9], now() - n * interval '1 minute'
    FROM corpus, generate_series(1, %(documents)s) n;
INSERT INTO rag.uploads (document_id, corpus_id, user_id, content_hash, file_name, size_bytes, status)
    SELECT d.id, d.corpus_id, %(user)s, d.content_hash, d.file_name, d.size_bytes, 'indexed'
    FROM rag.documents d, generate_series(1, 3) n;
INSERT INTO rag.data_chunks (text, node_id, embedding, corpus_id, document_id, chunk_index, char_start, char_end,
                             length)
    SELECT repeat('The plant of Lyon keeps bolts. ', 40), d.id || ':' || n,
           (array_fill(0.0, ARRAY[383]) || 1.0::float8)::vector::public.halfvec, d.corpus_id, d.id, n, 0, 1240, 240
    FROM rag.documents d, generate_series(0, 3) n;
INSERT INTO rag.conversations (user_id, title, pinned, updated_at)
    SELECT %(user)s, 'Conversation ' || n, n %% 50 = 0, now() - n * interval '1 hour' FROM generate_series(1, 499) n;
INSERT INTO rag.conversations (id, user_id, title) VALUES (%(long)s, %(user)s, 'Long');
INSERT INTO rag.messages (conversation_id, user_id, role, content)
    SELECT c.id, %(user)s, CASE n %% 2 WHEN 1 THEN 'user' ELSE 'assistant' END,
           CASE n %% 2 WHEN 1 THEN 'question ' || (n + 1) / 2 ELSE repeat('An answer about bolts. ', 80) END
    FROM rag.conversations c, generate_series(1, CASE c.id WHEN %(long)s THEN 2000 ELSE 20 END) n ORDER BY n;
INSERT INTO rag.answers (id, user_id, record)
    SELECT gen_random_uuid(), u.id, '{}' FROM rag.users u;
INSERT INTO rag.feedback (answer_id, user_id, thumbs, question, answer)
    SELECT a.id, a.user_id, 'down', 'A question', 'An answer' FROM rag.answers a;
ANALYZE
"""


def main(documents: int) -> int:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    with tempfile.TemporaryDirectory(prefix="rag-soak-") as name:
        postgres = make_template(asyncio.run(start_embedded_server(Path(name))))
        with running_service(postgres) as service, sync_playwright() as started:
            with service.client(service.admin) as client:
                client.post("/api/v1/corpora", json={"name": "documents", "kind": "global"}).raise_for_status()
            with psycopg.connect(service.owner_conninfo) as owner:
                values = {"user": service.admin.id, "long": LONG, "documents": documents}
                for statement in FILL.split(";\n"):
                    owner.execute(statement, values)  # type: ignore[arg-type]  # fixed text
            browser = started.chromium.launch(executable_path=find_chromium(), args=["--no-sandbox"])
            width, height = WIDE
            page = browser.new_page(base_url=service.url, viewport={"width": width, "height": height}, locale="en-US")
            sign_in(page, service.admin)
            slow = [view for view, took in measure(page) if took > MOST_MILLISECONDS]
            browser.close()
    return 1 if slow else 0


def sign_in(page: Page, person: Person) -> None:
    page.goto("/")
    page.wait_for_selector("html.is-started")
    page.fill("#credential", person.key)
    page.press("#credential", "Enter")
    page.wait_for_selector("#account:not([hidden])")


def measure(page: Page) -> Iterator[tuple[str, float]]:
    """Views with the median of their milliseconds until the content is there."""
    for view, wanted in VIEWS.items():
        times, paints = [], []
        for _ in range(TIMES):
            page.goto("about:blank")
            page.goto(f"/#{view}", wait_until="commit")
            page.wait_for_selector(wanted)
            times.append(page.evaluate("performance.now()"))
            paints.append(page.evaluate("performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0"))
        yield tell(view, times, f"; first paint {statistics.median(paints):.0f} ms")
    for name, (view, box, wanted) in STEPS.items():
        times = []
        for _ in range(TIMES):
            page.goto("about:blank")
            page.goto(f"/#{view}")
            page.wait_for_selector(VIEWS[view])
            began = page.evaluate("performance.now()")
            page.fill(box, "487")
            page.wait_for_selector(f"#{view}-list .row >> nth=20", state="detached")
            page.wait_for_selector(wanted)
            times.append(page.evaluate("performance.now()") - began)
        yield tell(name, times)


def tell(view: str, times: list[float], more: str = "") -> tuple[str, float]:
    median = statistics.median(times)
    click.echo(f"{view}: {median:.0f} ms ({min(times):.0f} to {max(times):.0f}){more}")
    return view, median


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else DOCUMENTS))
