"""Makes what a model writes safe to show while it streams: no foreign links, no text of the prompt.

Every change is recorded by its place, so that its sentence can be flagged.

A link in an answer can carry away what the model has read (an image is fetched without a click) or lead a reader
astray. A URL passes only if the model was shown that very URL; any other is replaced. Markdown that would turn
something else into a link is broken by one space, images become links, and a tag's `<` becomes `‹`. Nothing else in
the text changes. At most one word is held back, since a URL contains no white space, or the inside of a Markdown
link's parentheses.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum
from functools import cached_property

from rag_service.answering.guards.injection import without_injections
from rag_service.domain import Hit
from rag_service.language.languages import FALLBACK_LANGUAGE, texts_in
from rag_service.language.words import fold

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
LEAK_LETTERS = 30  # this many letters in a row, five or six words, are no coincidence
_RUN_LETTERS = 120  # letters of a run that are remembered
_SHARED_LETTERS = 3  # letters of a word before a leak that may be the leak's first by chance
_MAX_HELD = 300  # characters, or they would be looked through again with each piece; twice as many for a moment
_SENTENCE_ENDS = ".!?…\n"
# Schemes of addresses that run something or read the disk: no target of a link, whoever wrote it.
_RUNS = re.compile(r"(?:javascript|vbscript|data|file|blob):", re.IGNORECASE)


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


class _State(Enum):
    OPEN = 1  # text passes
    LEAKING = 2  # text of a secret arrives
    ENDING = 3  # no more of the secret, but its sentence goes on


class LeakFilter:
    """Takes text in pieces, gives it back with each leak, to the end of its sentence, replaced by a notice."""

    def __init__(self, secret: str, *, notice: str) -> None:
        """
        Args:
            secret: text that must not be repeated; a short one (under 30 letters) only as a whole. Empty: none.
            notice: put in the place of what is left out.
        """
        letters = "".join(filter(str.isalpha, fold(secret)))
        # Numbers are left out of a long text: a list may be numbered anew.
        self._counts: Callable[[str], bool] = str.isalpha if len(letters) >= LEAK_LETTERS else str.isalnum
        self._secret = "".join(filter(self._counts, fold(secret)))
        self._needed = min(LEAK_LETTERS, len(self._secret))
        self._block = max(1, self._needed // 2 - 2)  # any run of nearly as many as needed holds such a block whole
        self._run = ""  # the last letters, as many as stand together in the secret
        self._notice = notice
        self._state = _State.OPEN
        self._held = ""  # may become a leak; while leaking: what follows the end of a sentence
        self._sentence_over = False  # a sentence has ended since the leak's last letter
        self._in_word = False  # whether the last character given out belongs to a word
        self._length = 0
        self.changes: list[int] = []  # offsets of the notices in the output

    def feed(self, text: str) -> str:
        """Takes the next piece; returns what is no part of a leak."""
        if not self._secret:
            self._length += len(text)
            return text
        if self._state is _State.OPEN and self._pass(text):
            self._held += text
            return self._release()
        given = []
        for character in text:
            letters = fold(character)
            near = any(map(str.isalnum, letters)) and len(self._run) + len(letters) >= self._needed
            if self._state is _State.OPEN and (len(self._held) > 2 * _MAX_HELD or near):
                given.append(self._release())  # now, as what is held then is taken for the leak's own
            given.append(self._take(character, letters))
        if self._state is _State.OPEN:
            given.append(self._release())  # once a piece: where a run begins takes longer to tell than that it goes on
        return "".join(given)

    def flush(self) -> str:
        """The rest."""
        rest = self._held if self._state is _State.OPEN else ""
        self._held = ""
        self._length += len(rest)
        return rest

    def _pass(self, text: str) -> bool:
        """Take a whole piece, if nothing in it comes near to a leak: letter by letter takes ten times as long."""
        letters = self._run + "".join(filter(self._counts, fold(text)))
        block = self._block
        for start in range(0, len(letters) - block + 1, block):
            if letters[start : start + block] in self._secret:
                return False
        length = 0
        while length < len(letters) and letters[len(letters) - length - 1 :] in self._secret:
            length += 1
        self._run = letters[len(letters) - length :]
        return True

    def _take(self, character: str, letters: str) -> str:
        for letter in filter(self._counts, letters):
            self._run = (self._run + letter)[-_RUN_LETTERS:]
            while self._run not in self._secret:
                self._run = self._run[1:]
        leaks = len(self._run) >= self._needed
        match self._state:
            case _State.OPEN:
                self._held += character
                return self._begin_leak() if leaks else ""
            case _State.LEAKING if leaks:
                self._continue_leak(character)
            case _State.LEAKING if self._sentence_over:
                self._state = _State.OPEN
                self._held += character
                return self._release()
            case _State.LEAKING:
                self._state = _State.ENDING
            case _State.ENDING if character in _SENTENCE_ENDS:
                self._state = _State.OPEN
                self._held = "\n" if character == "\n" else ""
        return ""

    def _begin_leak(self) -> str:
        rest = self._rest_of_word()
        self._state, self._held, self._sentence_over = _State.LEAKING, "", False
        self._length += len(rest)
        self.changes.append(self._length)
        self._length += len(self._notice)
        return rest + self._notice

    def _rest_of_word(self) -> str:
        """The end of a word that is the answer's own, though its letters are the first of the leak's too."""
        end = next((at for at, character in enumerate(self._held) if not character.isalnum()), 0)
        if not self._in_word or end > _SHARED_LETTERS:
            return ""
        while end < len(self._held) and not self._held[end].isalnum():
            end += 1
        return self._held[:end]

    def _continue_leak(self, character: str) -> None:
        if character.isalnum():
            self._held, self._sentence_over = "", False
        elif character in _SENTENCE_ENDS:
            breaks = self._held if character == "\n" and self._sentence_over else ""
            self._held, self._sentence_over = breaks[-_MAX_HELD:] + character.strip(".!?…"), True
        elif self._sentence_over and len(self._held) < _MAX_HELD:
            self._held += character

    def _release(self) -> str:
        """What is held, but for the end that may be the beginning of a leak."""
        cut, letters = len(self._held), len(self._run)
        while letters > 0 and cut:
            cut -= 1
            letters -= sum(map(self._counts, fold(self._held[cut])))
        if self.changes:  # the number of the prompt's next rule may stand before it
            while cut and not self._held[cut - 1].isalpha():
                cut -= 1
        if len(self._held) - cut > 2 * _MAX_HELD:
            cut = len(self._held) - _MAX_HELD  # no leak is spelt so far apart
        ready, self._held = self._held[:cut], self._held[cut:]
        if ready:
            self._in_word = ready[-1].isalnum()
        self._length += len(ready)
        return ready


_PASSES = 4  # what is taken out may leave neighbours that only then look like a link
_MAX_WORD = 4096  # characters held back at most
_ELEMENT = (
    "a|abbr|address|applet|area|article|aside|audio|b|base|bdi|bdo|big|blink|blockquote|body|br|button|canvas|caption"
    "|center|cite|code|col|colgroup|data|datalist|dd|del|details|dfn|dialog|dir|div|dl|dt|em|embed|fieldset|figcaption"
    "|figure|font|footer|form|frame|frameset|h[1-6]|head|header|hr|html|i|iframe|img|input|ins|kbd|label|legend|li"
    "|link|main|map|mark|marquee|math|menu|meta|meter|nav|noscript|object|ol|optgroup|option|output|p|param|picture"
    "|pre|progress|q|s|samp|script|section|select|slot|small|source|span|strike|strong|style|sub|summary|sup|svg"
    "|table|tbody|td|template|textarea|tfoot|th|thead|time|title|tr|track|u|ul|var|video|wbr|xml"
)
# A known element, a comment, any tag with room for attributes, or an address that is a link in Markdown; `List<String>`
# stays.
_TAG = re.compile(rf"<(?=/?(?:{_ELEMENT})\b|[!?]|/?[a-z][\w:-]*(?:[\s/]|$)|{_RUNS.pattern})", re.IGNORECASE)
# "today![C1]" is no image: a mark, exactly, that nothing follows which would make it one.
_IMAGE = re.compile(r"(?<!!)!++(?=\[)(?!\[C\d{1,3}(?:, ?C\d{1,3})*\](?![(\[:]))")
_TARGET = re.compile(r"\](?=\()")
_REFERENCE = re.compile(r"^([ >\t]*\[[^\]\n]{1,300}\]):", re.MULTILINE)
# Nothing is to be done where none of these stands: the quick way out for nearly every piece.
_SUSPECT = re.compile(r"[<!@/\\:\u00ad]|\](?=[(:])|[\w-]\.\S|[^\x00-\u024f€–—’‘“”…•]")
_INVISIBLE = re.compile("[\u00ad\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]")


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
        for start, end in find_url_places(text):
            if not self._allows(text[start:end]):
                yield start, end, texts_in(self._language).link_removed
        for match in _TARGET.finditer(text):
            inside, closing, _ = text[match.end() + 1 : match.end() + 1 + _MAX_WORD].partition(")")
            is_cut = not closing and len(inside) == _MAX_WORD
            if is_cut or _RUNS.match(inside.strip()) or not self._allows(inside.strip()):
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


class OutputGuard:
    """A filter over the pieces of an answer."""

    def __init__(
        self, shown: Iterable[Hit], *, secrets: Sequence[str] = (), notice: str = "", language: str = "en"
    ) -> None:
        """
        Args:
            shown: the passages put before the model. A URL in one of them may appear in the answer,
                unless it is part of an injection.
            secrets: texts of the prompt that must not be repeated, without the refusal that it asks for.
            notice: replaces a repeated text.
            language: of the words that replace a link.
        """
        self._shown = tuple(shown)
        self._leaks = LeakFilter("\n".join(secrets), notice=notice)
        self._links = LinkFilter(lambda url: url in self._allowed, language=language)
        self.leaks: Sequence[int] = self._leaks.changes  # where text of the prompt was left out
        self.changes: Sequence[int] = self._links.changes  # offsets in the safe text of changed links and HTML

    @cached_property
    def _allowed(self) -> frozenset[str]:
        """Computed at the first URL: most answers have none."""
        texts = (url for hit in self._shown for url in find_urls(without_injections(hit).chunk.text))
        names = (hit.chunk.document.file_name or hit.chunk.document.title for hit in self._shown)
        return frozenset((*texts, *(url for name in names for url in find_urls(name) if _is_plain(url))))

    def feed(self, text: str) -> str:
        """Takes the next piece; returns what is now safe to show."""
        return self._links.feed(self._leaks.feed(text))

    def flush(self) -> str:
        """The rest, after the last piece."""
        return self._links.feed(self._leaks.flush()) + self._links.flush()


def guard_name(name: str) -> str:
    """The name of a file or document as one line that is no image, link or HTML where Markdown is rendered."""
    line = " ".join(name.split())
    links = LinkFilter(_is_plain)
    return links.feed(line) + links.flush()


def _is_plain(url: str) -> bool:
    """Whether it is a name that only looks like a host: `notes.org`, and no address to go to."""
    return not any(sign in url for sign in "/:@?#")


def guard_text(guard: OutputGuard, text: str) -> str:
    """A whole text at once."""
    return guard.feed(text) + guard.flush()
