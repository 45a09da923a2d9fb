"""Finds URLs, mail addresses and hosts in a text."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

_URL_END = r"[^\s<>\"'“”«»‹›{}|\\^`\]]"
_TLD_ALONE = "com|net|org|info|biz|xyz|example|test|invalid|site|online|click|link|top|shop|live|cloud"
_SCHEME = (
    r"(?:[a-z][a-z0-9+.-]{1,20}:/{1,3}|//(?=[\w-]+\.)|(?<![\w.-])www\d?\."
    rf"|(?:mailto|javascript|vbscript|data|tel|sms|blob|file):){_URL_END}+"
)
_MAIL = r"[\w.+-]++@[\w-]++(?:\.[\w-]++)++"
# An address and a host are tried where their run of characters begins, and nowhere else in it: where the whole run is
# none, its rest is none either, and to try that for every rest of a long run takes seconds. A host begins with its
# first letter or digit, behind signs of the run that cannot begin one.
_URL = re.compile(
    rf"(?P<scheme>{_SCHEME})"
    rf"|(?P<mail>(?<![\w.+-]){_MAIL})"
    r"|(?:(?<![\w.-])\.?|(?<=\.\.))(?>(?:-++\.?)*)(?=\w)(?P<host>"
    rf"{_SCHEME}"
    rf"|(?:[\w-]++\.)++[a-z]{{2,24}}(?::\d++)?[/?]{_URL_END}*"
    rf"|(?:[\w-]++\.)+(?:{_TLD_ALONE})\b(?!\.?\w))"
    rf"|(?P<number>\b\d{{1,3}}(?:\.\d{{1,3}}){{3}}(?::\d++)?/{_URL_END}*)",
    re.IGNORECASE,
)
_NEXT_MAIL = re.compile(_MAIL)  # begins where another ended
# Renderers take an address to the next white space or `<` (GitHub Flavored Markdown, 6.9), and a target ends at `](`.
_REST = re.compile(r"[^\s<\]]*+(?:\](?!\()[^\s<\]]*+)*")
_REST_IN_BRACKETS = re.compile(r"[^\s<>\]]*+(?:\](?!\()[^\s<>\]]*+)*")  # of `<https://…>`
_TRAILING = ".,;:!?)]*_~'’\"“”«»‹›{}|\\^`>"


def find_urls(text: str) -> set[str]:
    """The URLs of a text, without the punctuation that follows them, and with all that a renderer takes into them."""
    found = [(start, end) for start, end in _find_urls(text)]
    return {_trim(text[start:end]) for start, end in found} | {
        _trim(text[s : _end_of_run(text, s, e)]) for s, e in found
    }


def find_url_places(text: str) -> Iterator[tuple[int, int]]:
    """Characters [start, end) of the URLs as a renderer takes them, also in full-width and other look-alike letters."""
    done = 0
    for start, end in _find_urls(_same_length_nfkc(text)):
        if start < done:  # inside of the last one
            continue
        done = _end_of_run(text, start, end)
        if url := _trim(text[start:done]):
            yield start, start + len(url)


def _end_of_run(text: str, start: int, end: int) -> int:
    """Where a renderer ends the URL that reaches to `end` at least."""
    rest = (_REST_IN_BRACKETS if text[start - 1 : start] == "<" else _REST).match(text, end)
    return end if rest is None else rest.end()


def _find_urls(text: str) -> Iterator[tuple[int, int]]:
    """Characters [start, end) that are URLs, with the punctuation that follows them."""
    match = _URL.search(text)
    while match and match.lastgroup:
        yield match.span(match.lastgroup)
        following = _NEXT_MAIL.match(text, match.end()) if match.lastgroup == "mail" else None
        while following:
            yield following.span()
            match, following = following, _NEXT_MAIL.match(text, following.end())
        match = _URL.search(text, match.end())


def _trim(url: str) -> str:
    trimmed = url.rstrip(_TRAILING)
    closing = trimmed.count("(") - trimmed.count(")")
    return trimmed + ")" * closing if closing > 0 and url.startswith(trimmed + ")" * closing) else trimmed


def _same_length_nfkc(text: str) -> str:
    """Full-width and other look-alike letters as plain ones, character for character."""
    if text.isascii():
        return text
    plain = (unicodedata.normalize("NFKC", character) for character in text)
    return "".join(new if len(new) == 1 else old for new, old in zip(plain, text, strict=True))
