"""The routes of the page: the HTML in the visitor's language, its assets."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from litestar import Response, get
from litestar.datastructures import Cookie
from litestar.exceptions import NotFoundException
from litestar.handlers import HTTPRouteHandler
from markupsafe import Markup

from rag_service.api.http.bodies import AnyRequest
from rag_service.api.http.languages import LANGUAGE_COOKIE
from rag_service.api.http.proxies import own_address
from rag_service.readers.common.names import IMAGE_SUFFIXES, OLD_OFFICE_SUFFIXES, SUFFIXES
from rag_service.readers.ocr.recognition import is_installed
from rag_service.readers.old_office import find_converter
from rag_service.settings import Settings
from rag_service.web.assets import PDF_WORKER, Asset, Assets, load_assets, make_asset
from rag_service.web.languages import choose_language, load_strings

TEMPLATES = Path(__file__).parent / "templates"
THEME_COOKIE = "rag_theme"  # written by theme.js; read here so that the first paint has the right colours
_THEMES = ("", "light", "dark")  # "" follows the system
_YEAR = 365 * 24 * 3600
# Stricter than the API's: nothing but our own files, and no way from text to markup (Trusted Types), so
# that a slip in a script cannot turn an answer into HTML. The one policy knows the address of one worker.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "manifest-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types pdf-worker"
)
# Of the worker that reads PDFs, which has no page: its image decoders are WebAssembly.
_WORKER_POLICY = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; connect-src 'self'"


def _accepted() -> tuple[str, ...]:
    """Extensions of the files that can be read here."""
    images, old = IMAGE_SUFFIXES if is_installed() else (), OLD_OFFICE_SUFFIXES if find_converter() else ()
    return (*SUFFIXES, *images, *old)


def _embed(strings: object) -> Markup:
    """JSON as the text of an element. Escaping its quotes as HTML would add a seventh to the page."""
    text = json.dumps(strings, ensure_ascii=False, separators=(",", ":"))
    return Markup(text.replace("&", r"\u0026").replace("<", r"\u003c").replace(">", r"\u003e"))  # noqa: S704 - escaped


def web_routes(settings: Settings) -> list[HTTPRouteHandler]:
    assets = load_assets()
    pages = dict(_render_all(assets, settings))
    return [_page_route(pages), _asset_route(assets)]


def _render_all(assets: Assets, settings: Settings) -> Iterator[tuple[tuple[str, str], Asset]]:
    """Every page, rendered once per language and theme."""
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    template = environment.get_template("page.html")
    for language, strings in load_strings().items():
        for theme in _THEMES:
            html = template.render(
                language=language,
                languages={code: texts["name"] for code, texts in load_strings().items()},
                theme=theme,
                t=strings["page"],
                client_strings=_embed(strings["client"]),
                assets=assets,
                needs_login=settings.auth.mode == "required",
                sharing=settings.auth.sharing and settings.auth.mode == "required",
                way=settings.sign_in.way,
                provider=settings.sign_in.label,
                accepted=",".join(_accepted()),
                upload_max_mb=settings.uploads.max_mb,
                question_max_chars=settings.limits.query_max_chars,
            )
            html = re.sub(r"\n\s+", "\n", html)  # indentation is a tenth of it
            yield (language, theme), make_asset(html.encode(), "text/html")


def _page_route(pages: dict[tuple[str, str], Asset]) -> HTTPRouteHandler:
    @get("/", include_in_schema=False, sync_to_thread=False)
    def show_page(request: AnyRequest) -> Response[bytes | None]:
        chosen = request.query_params.get("lang")
        if chosen is not None and chosen in load_strings():
            return _remember_language(request, chosen)
        language = choose_language(request.cookies.get(LANGUAGE_COOKIE), request.headers.get("accept-language", ""))
        theme = request.cookies.get(THEME_COOKIE, "")
        page = pages[language, theme if theme in _THEMES else ""]
        headers = {
            "Cache-Control": "private, no-cache",
            "Content-Language": language,
            "Content-Security-Policy": _POLICY,
            "Vary": "Accept-Language, Cookie",
        }
        return _reply(request, page, headers)

    return show_page


def _remember_language(request: AnyRequest, language: str) -> Response[bytes | None]:
    here = own_address(request.scope, "/")
    cookie = Cookie(LANGUAGE_COOKIE, value=language, max_age=_YEAR, path=here, samesite="lax", httponly=True)
    headers = {"Location": here, "Cache-Control": "no-store"}
    return Response(None, status_code=303, headers=headers, cookies=[cookie])


def _asset_route(assets: Assets) -> HTTPRouteHandler:
    @get("/assets/{version:str}/{name:str}", include_in_schema=False, sync_to_thread=False)
    def send_asset(request: AnyRequest, version: str, name: str) -> Response[bytes | None]:
        asset = assets.files.get(name)
        if asset is None:
            raise NotFoundException
        # While a new version is rolled out, a page may ask for files of the one before: never keep those.
        lasting = version == assets.version
        cache = f"public, max-age={_YEAR}, immutable" if lasting else "no-cache"
        policy = {"Content-Security-Policy": _WORKER_POLICY} if name == PDF_WORKER else {}
        return _reply(request, asset, {"Cache-Control": cache, **policy})

    return send_asset


def _reply(request: AnyRequest, asset: Asset, headers: dict[str, str]) -> Response[bytes | None]:
    """The file, gzipped if accepted, or 304 if the browser has it."""
    packed = f'{asset.etag[:-1]}-gz"'  # a strong tag names one encoding (RFC 9110, section 8.8.3.3)
    takes_gzip = re.search(r"\bgzip\b(?!\s*;\s*q=0(?:\.0*)?(?:[\s,]|$))", request.headers.get("accept-encoding", ""))
    headers["ETag"] = packed if takes_gzip else asset.etag
    headers["Vary"] = ", ".join(filter(None, ["Accept-Encoding", headers.get("Vary")]))
    known = {tag.strip().removeprefix("W/") for tag in request.headers.get("if-none-match", "").split(",")}
    if known & {asset.etag, packed, "*"}:
        return Response(None, status_code=304, headers=headers)
    if takes_gzip:
        headers["Content-Encoding"] = "gzip"
    return Response(asset.packed if takes_gzip else asset.body, media_type=asset.media_type, headers=headers)
