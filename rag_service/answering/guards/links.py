"""Makes links, images and HTML in a model's text harmless while it streams.

A link in an answer can carry away what the model has read (an image is fetched without a click) or lead a reader
astray. A URL passes only if the model was shown that very URL; any other is replaced. Markdown that would turn
something else into a link is broken by one space, images become links, and a tag's `<` becomes `‹`. Nothing else in
the text changes.

At most one word is held back, since a URL contains no white space, or the inside of a Markdown link's parentheses.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator

from rag_service.language.languages import FALLBACK_LANGUAGE, texts_in

_PASSES = 4  # what is taken out may leave neighbours that only then look like a link
_MAX_WORD = 4096  # characters held back at most
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
    r"|(?:(?<![\w.-])\.?|(?<=\.\.))(?:-++\.?)*+(?=\w)(?P<host>"
    rf"{_SCHEME}"
    rf"|(?:[\w-]++\.)++[a-z]{{2,24}}(?::\d++)?[/?]{_URL_END}*"
    rf"|(?:[\w-]++\.)+(?:{_TLD_ALONE})\b(?!\.?\w))"
    rf"|(?P<number>\b\d{{1,3}}(?:\.\d{{1,3}}){{3}}(?::\d++)?/{_URL_END}*)",
    re.IGNORECASE,
)
_NEXT_MAIL = re.compile(_MAIL)  # begins where another ended
_TRAILING = ".,;:!?)]*_~'’"
_ELEMENT = (
    "a|abbr|address|applet|area|article|aside|audio|b|base|bdi|bdo|big|blink|blockquote|body|br|button|canvas|caption"
    "|center|cite|code|col|colgroup|data|datalist|dd|del|details|dfn|dialog|dir|div|dl|dt|em|embed|fieldset|figcaption"
    "|figure|font|footer|form|frame|frameset|h[1-6]|head|header|hr|html|i|iframe|img|input|ins|kbd|label|legend|li"
    "|link|main|map|mark|marquee|math|menu|meta|meter|nav|noscript|object|ol|optgroup|option|output|p|param|picture"
    "|pre|progress|q|s|samp|script|section|select|slot|small|source|span|strike|strong|style|sub|summary|sup|svg"
    "|table|tbody|td|template|textarea|tfoot|th|thead|time|title|tr|track|u|ul|var|video|wbr|xml"
)
# A known element, a comment, or any tag with room for attributes; `List<String>` stays.
_TAG = re.compile(rf"<(?=/?(?:{_ELEMENT})\b|[!?]|/?[a-z][\w:-]*(?:[\s/]|$))", re.IGNORECASE)
_IMAGE = re.compile(r"(?<!!)!++(?=\[(?![cC\s]))")  # "today![C1]" is no image
_TARGET = re.compile(r"\](?=\()")
_REFERENCE = re.compile(r"^([ >\t]*\[[^\]\n]{1,300}\]):", re.MULTILINE)
# Nothing is to be done where none of these stands: the quick way out for nearly every piece.
_SUSPECT = re.compile(r"[<!@/\\:\u00ad]|\](?=[(:])|[\w-]\.\S|[^\x00-\u024f€–—’‘“”…•]")
_INVISIBLE = re.compile("[\u00ad\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]")


def find_urls(text: str) -> set[str]:
    """The URLs of a text, without the punctuation that follows them."""
    return {_trim(text[start:end]) for start, end in _find_urls(text)}


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


class LinkFilter:
    """Takes text in pieces, gives it back without foreign links. `changes` holds where it changed any."""

    def __init__(self, allows: Callable[[str], bool], *, language: str = FALLBACK_LANGUAGE) -> None:
        """
        Args:
            allows: whether a URL may stand in the output; asked only when there is one.
            language: of the words that replace the others.
        """
        self._allows = allows
        self._language = language
        self._held = ""
        self._line = ""  # what has been given out of the line at hand
        self._length = 0  # characters given out
        self.changes: list[int] = []  # offsets in the output

    def feed(self, text: str) -> str:
        """Takes the next piece; returns what can no longer become a link."""
        self._held += text
        # Before its last word, or an open link's parenthesis, it cannot change any more.
        cut = _start_of_last_word(self._held, len(self._held))
        opening = self._held.rfind("](", max(0, cut - _MAX_WORD), cut)
        if opening >= 0 and ")" not in self._held[opening:cut] and "\n\n" not in self._held[opening:cut]:
            cut = _start_of_last_word(self._held, opening)
        if cut < len(self._held) - _MAX_WORD:
            cut = len(self._held)
        ready, self._held = self._held[:cut], self._held[cut:]
        return self._give(ready)

    def flush(self) -> str:
        """The rest."""
        ready, self._held = self._held, ""
        return self._give(ready)

    def _give(self, text: str) -> str:
        if _SUSPECT.search(text):
            text = _INVISIBLE.sub("", text)
            for _ in range(_PASSES):
                edited = self._edit(text)
                if edited == text:
                    break
                text = edited
        self._length += len(text)
        self._line = (self._line + text).rpartition("\n")[2][-400:]
        return text

    def _edit(self, text: str) -> str:
        pieces: list[str] = []
        length = self._length
        position = 0
        for start, end, replacement in sorted(self._edits(text)):
            if start < position:
                continue
            pieces += [text[position:start], replacement]
            length += start - position + len(replacement)
            self.changes.append(max(self._length, length - 1))
            position = end
        return "".join([*pieces, text[position:]])

    def _edits(self, text: str) -> Iterable[tuple[int, int, str]]:
        """(start, end, replacement) of what must not stay."""
        for start, end in _find_urls(_same_length_nfkc(text)):
            url = _trim(text[start:end])
            if url and not self._allows(url):
                yield start, start + len(url), texts_in(self._language).link_removed
        for match in _TARGET.finditer(text):
            inside, closing, _ = text[match.end() + 1 : match.end() + 1 + _MAX_WORD].partition(")")
            if (not closing and len(inside) == _MAX_WORD) or not self._allows(inside.strip()):
                yield match.end(), match.end(), " "
        for match in _IMAGE.finditer(text):
            yield match.start(), match.end(), ""
        for match in _TAG.finditer(text):
            yield match.start(), match.end(), "‹"
        before = len(self._line)
        for match in _REFERENCE.finditer(self._line + text):
            if match.end(1) >= before:
                yield match.end(1) - before, match.end(1) - before, " "


def _start_of_last_word(text: str, end: int) -> int:
    """Where the word that reaches to `end` begins; `end` where white space stands before it."""
    if not end or text[end - 1].isspace():
        return end
    return end - len(text[:end].rsplit(None, 1)[-1])


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
