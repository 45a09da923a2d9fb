"""The page over a real socket: what is sent, to whom, and how long it may be kept."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from html.parser import HTMLParser
from typing import Any

import httpx
import pytest

from rag_service.errors import AuthenticationError
from rag_service.web.assets import FOLDER as ASSETS
from rag_service.web.languages import choose_language, load_strings
from rag_service.web.pages import TEMPLATES
from tests.integration.web.conftest import ServePage
from tests.integration.web.scenes import REPORT, Scene

FIRST_VISIT, ALL_VIEWS = 90_000, 124_000  # bytes on the wire: pages, scripts and styles
REPORT_ID = REPORT.chunk.document.id


class Markup(HTMLParser):
    """What a page's markup asks the browser to do."""

    def __init__(self, html: str):
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.script_text = ""
        self._in_script = False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._in_script = tag == "script"

    def handle_endtag(self, tag: str) -> None:
        self._in_script = False

    def handle_data(self, data: str) -> None:
        if self._in_script:
            self.script_text += data

    def assets(self) -> set[str]:
        found = [attributes.get("src") or attributes.get("href") for _, attributes in self.elements]
        return {url for url in found if url and url.startswith("assets/")}


def test_page_comes_with_a_strict_policy_and_nothing_inline(serve_page: ServePage) -> None:
    response = serve_page().get("/")
    assert response.status_code == 200
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    policy = response.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy and "http" not in policy and "*" not in policy
    assert "require-trusted-types-for 'script'" in policy
    page = Markup(response.text)
    assert page.script_text.strip() == ""
    for tag, attributes in page.elements:
        assert tag != "style"
        assert "style" not in attributes
        assert not any(name.startswith("on") for name in attributes), attributes
        for url in (attributes.get("src"), attributes.get("href")):
            assert url is None or re.match(r"[#?]|(?:assets|auth)/", url), f"{url} leads elsewhere"


@pytest.mark.parametrize("language", load_strings())
def test_everything_that_a_first_visit_loads_is_light(serve_page: ServePage, language: str) -> None:
    client = serve_page(auth="required")
    response = client.get("/", headers={"Accept-Language": language})
    sent = sizes_sent(client, ["/", *Markup(response.text).assets()], language)
    assert sum(sent.values()) <= FIRST_VISIT, sent


def test_everything_that_all_views_load_is_light_on_the_wire(serve_page: ServePage) -> None:
    client = serve_page(auth="required")
    page = client.get("/")
    folder = next(iter(Markup(page.text).assets())).rpartition("/")[0]
    urls = ["/", *(f"{folder}/{path.name}" for path in ASSETS.iterdir())]
    sent = sizes_sent(client, urls)
    assert sum(sent.values()) <= ALL_VIEWS, sent


def sizes_sent(client: httpx.Client, urls: Iterable[str], language: str = "en") -> dict[str, int]:
    sent = {}
    for url in urls:
        with client.stream("GET", url, headers={"Accept-Language": language}) as response:
            assert (response.status_code, response.headers["content-encoding"]) == (200, "gzip")
            sent[url] = len(b"".join(response.iter_raw()))
    return sent


def test_first_visit_names_its_scripts_and_no_later_ones(serve_page: ServePage) -> None:
    page = Markup(serve_page().get("/").text)
    loaded = {url.rpartition("/")[2] for url in page.assets() if url.endswith(".js")}
    for name in loaded:
        script = (ASSETS / name).read_text(encoding="utf-8")
        assert set(re.findall(r'from "\./([\w.]+)"', script)) <= loaded, f"{name} would wait for what it imports"
    assert "main.js" in loaded
    assert not loaded & {"documents.js", "upload.js", "manage.js", "manage_users.js"}


def test_files_come_gzipped_only_to_those_who_take_it(serve_page: ServePage) -> None:
    client = serve_page()
    plain = client.get("/", headers={"Accept-Encoding": "identity"})
    refused = client.get("/", headers={"Accept-Encoding": "gzip;q=0, identity"})
    packed = client.get("/", headers={"Accept-Encoding": "br, gzip;q=0.5"})
    assert [one.headers.get("content-encoding") for one in (plain, refused, packed)] == [None, None, "gzip"]
    assert plain.text == packed.text
    assert plain.headers["etag"] != packed.headers["etag"]


@pytest.mark.parametrize(("auth", "asked"), [("required", True), ("none", False)])
def test_page_asks_for_a_key_only_where_one_is_needed(serve_page: ServePage, auth: str, asked: bool) -> None:
    page = serve_page(auth=auth).get("/").text
    assert ('id="sign-in"' in page, 'id="sign-out"' in page) == (asked, asked)
    assert f'data-auth="{auth}"' in page


def test_page_is_asked_for_again_but_sent_only_when_it_changed(serve_page: ServePage) -> None:
    client = serve_page()
    first = client.get("/")
    assert first.headers["cache-control"] == "private, no-cache"
    assert first.headers["vary"] == "Accept-Encoding, Accept-Language, Cookie"
    again = client.get("/", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    other = client.get("/", headers={"If-None-Match": first.headers["etag"], "Accept-Language": "fr"})
    assert other.status_code == 200


def test_assets_are_kept_for_ever_under_their_version_only(serve_page: ServePage) -> None:
    client = serve_page()
    url = next(url for url in Markup(client.get("/").text).assets() if url.endswith("main.js"))
    asset = client.get(url)
    assert asset.headers["content-type"] == "text/javascript; charset=utf-8"
    assert "immutable" in asset.headers["cache-control"]
    assert client.get(url, headers={"If-None-Match": f'W/"x", {asset.headers["etag"]}'}).status_code == 304
    older = client.get("/assets/0123456789ab/main.js")
    assert (older.status_code, older.headers["cache-control"]) == (200, "no-cache")


@pytest.mark.parametrize(
    "name", ["nothing.js", "..%2fpages.py", "%2e%2e/pages.py", "../strings/en.json", "style.css%00"]
)
def test_only_assets_can_be_had(serve_page: ServePage, name: str) -> None:
    response = serve_page().get(f"/assets/0123456789ab/{name}")
    assert response.status_code == 404
    assert response.headers["content-type"] == "application/problem+json"


# -- languages and themes


@pytest.mark.parametrize(
    ("remembered", "accepted", "expected"),
    [
        (None, "", "en"),
        (None, "fr-CA,fr;q=0.9,en;q=0.5", "fr"),
        (None, "sv,es;q=0.2,fr;q=0.8", "fr"),
        (None, "es;q=0,fr;q=0.1", "fr"),
        (None, "es;q=nonsense, fr", "fr"),
        (None, "*;q=0.5,,;=", "en"),
        ("es", "fr", "es"),
        ("<script>", "fr", "fr"),
    ],
)
def test_language_is_chosen(remembered: str | None, accepted: str, expected: str) -> None:
    assert choose_language(remembered, accepted) == expected


@pytest.mark.parametrize("language", load_strings())
def test_page_is_in_the_language_asked_for(serve_page: ServePage, language: str) -> None:
    response = serve_page().get("/", headers={"Accept-Language": language})
    assert f'<html lang="{language}"' in response.text
    assert response.headers["content-language"] == language
    assert load_strings()[language]["page"]["ask_title"] in response.text


def test_language_is_switched_and_remembered(serve_page: ServePage) -> None:
    client = serve_page()
    response = client.get("/?lang=es")
    assert (response.status_code, response.headers["location"]) == (303, "/")
    assert '<html lang="es"' in client.get("/", headers={"Accept-Language": "fr"}).text
    assert client.get("/?lang=xx").status_code == 200


@pytest.mark.parametrize(("cookie", "expected"), [("dark", 'data-theme="dark"'), ("light", 'data-theme="light"')])
def test_theme_is_in_the_first_paint(serve_page: ServePage, cookie: str, expected: str) -> None:
    assert expected in serve_page().get("/", headers={"Cookie": f"rag_theme={cookie}"}).text


def test_hostile_theme_is_ignored(serve_page: ServePage) -> None:
    page = serve_page().get("/", headers={"Cookie": 'rag_theme="><script>alert(1)</script>'}).text
    assert "data-theme" not in page and "alert(1)" not in page


def flatten(value: Any, path: str = "") -> dict[str, str]:
    if isinstance(value, str):
        return {path: value}
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    return {key: text for name, inner in pairs for key, text in flatten(inner, f"{path}.{name}").items()}


@pytest.mark.parametrize("language", load_strings())
def test_every_language_has_all_words_with_the_same_blanks(language: str) -> None:
    english, words = (flatten(load_strings()[code]) for code in ("en", language))
    assert words.keys() == english.keys()
    for key, text in words.items():
        assert text.strip(), f"{key} is empty"
        assert set(re.findall(r"\{\w+\}", text)) == set(re.findall(r"\{\w+\}", english[key])), key


def test_every_word_that_the_scripts_name_is_there_and_every_other_is_gone() -> None:
    words = load_strings()["en"]
    scripts = "".join(script.read_text(encoding="utf-8") for script in ASSETS.glob("*.js"))
    for key in re.findall(r"\bt\(\s*\"(\w+)\"", scripts):
        assert key in words["client"] or f"{key}_other" in words["client"], key
    # A name may be made of a family and a value: `error_${code}`.
    families = [rf"{before}\w+{after}" for before, after in re.findall(r"`(\w+_)\$\{[^{}`]+\}(\w*)`", scripts)]
    named = re.compile("|".join([*re.findall(r'"(\w+)"', scripts), *families, r"error_\w+_help"]))
    left = [key for key in words["client"] if not named.fullmatch(re.sub("_(one|other)$", "", key))]
    templates = "".join(page.read_text(encoding="utf-8") for page in TEMPLATES.glob("*.html"))
    left += [key for key in words["page"] if not re.search(rf"\bt\.{key}\b", templates)]
    assert left == []


def test_limits_of_the_settings_are_told(serve_page: ServePage) -> None:
    page = serve_page(upload_max_mb=7, query_max_chars=123).get("/").text
    assert 'data-max-megabytes="7"' in page and "Up to 7 MB" in page and 'data-max="123"' in page


# -- pieces of documents


def text(client: httpx.Client, query: str = "", document: object = REPORT_ID) -> httpx.Response:
    return client.get(f"/api/v1/documents/{document}/text{query}")


def test_piece_of_a_document_is_exactly_the_characters_asked_for(serve_page: ServePage) -> None:
    stored = REPORT.chunk.text
    at = stored.index("97,4")
    body = text(serve_page(), f"?start={at}&end={at + 4}").json()
    assert body == {"documentId": str(REPORT_ID), "start": at, "end": at + 4, "length": len(stored), "text": "97,4"}


def test_piece_is_cut_at_the_end_of_the_document(serve_page: ServePage) -> None:
    client, length = serve_page(), len(REPORT.chunk.text)
    tail = text(client, f"?start={length - 3}&end={length + 500}").json()
    assert (tail["end"], len(tail["text"])) == (length, 3)
    beyond = text(client, f"?start={length + 10}").json()
    assert (beyond["start"], beyond["end"], beyond["text"]) == (length, length, "")
    assert len(text(client).json()["text"]) == 4000


@pytest.mark.parametrize(
    ("query", "field"),
    [("?start=-1", "start"), ("?start=x", "start"), ("?start=٣", "start"), ("?start=5&end=4", "end"),
     ("?end=20001", "end"), ("?end=1e3", "end"), ("?start=99999999999", "start")],
)  # fmt: skip
def test_wrong_range_names_its_field(serve_page: ServePage, query: str, field: str) -> None:
    response = text(serve_page(), query)
    assert response.status_code == 400
    assert response.json()["errors"][0]["field"] == field


def test_documents_that_are_not_there_or_not_theirs_are_not_found(serve_page: ServePage) -> None:
    client = serve_page()
    assert text(client, document="00000000-0000-0000-0000-00000000dead").json()["code"] == "not_found"
    assert text(client, document="..%2f..%2fetc").status_code == 404


def test_text_needs_an_identity_and_is_not_kept(serve_page: ServePage) -> None:
    scene = Scene(error=AuthenticationError("no key"))
    client = serve_page(scene)
    assert text(client).headers["cache-control"] == "no-store"
    scene.failing = "authenticate"
    assert text(client).status_code == 401


def test_strings_inside_the_page_cannot_end_their_element(serve_page: ServePage) -> None:
    page = serve_page().get("/").text
    inside = page.split('<template id="strings">')[1].split("</template>")[0]
    assert "<" not in inside
    assert json.loads(inside.replace("&#34;", '"').replace("&#39;", "'").replace("&amp;", "&"))
