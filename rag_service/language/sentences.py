"""Where sentences begin and end, for whole texts and for streams.

One scanner serves both. It looks at each full stop and each line break once, decides from the text to the left and from
a bounded look to the right, and waits when that look reaches the end of what has arrived so far. So a stream gives the
same sentences as the whole text, however it was cut, and the work is linear in the length of the text.

What ends a sentence: `.`, `!`, `?`, `…` with the quotes and brackets that close after it, unless the
stop belongs to an abbreviation, an initial or a number, or the text goes on in lower case. A blank
line, a list item, a heading, a table row (`| a | b |`, or cells joined by ` | `) and a line of code end
one too; any other line break is taken as the wrapping of a line. Citation marks such as `[C1]` that
follow the stop, or stand alone on the next line, belong to the sentence before them.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from rag_service.language.languages import languages_of, union_of
from rag_service.language.normalise import BEFORE_MARK, MARKS, MARKS_OPEN, OPENING

_CANDIDATE = re.compile(r"[.!?…。！？]+|\n")
_SPACE = re.compile(r"\s*")
_CLOSERS = re.compile(r"(?:[ \u00a0\u202f]?»|[\"'”’)\]*_`])*")
_LINE_END = re.compile(r"[ \t\r]*(?:\n|\Z)")
_ALNUM = re.compile(r"[^\W_]")

# What decides whether a line break ends a sentence.
_FENCE = re.compile(r"```|~~~")
_MARKER = re.compile(  # what a new item, heading, row, rule or block begins with
    r"[-*+•‣▪·–—]\s|\(?\d{1,3}[.)]\s|\(?[a-zA-Z]\)\s|#{1,6}\s|\||>|```|~~~|(?:-{3,}|\*{3,}|_{3,}|={3,})\s"
)
# The same as far as a stream has brought it.
_MARKER_OPEN = re.compile(r"(?:[-*+•‣▪·–—]+|_+|=+|\(?\d{0,3}[.)]?|\(?[a-zA-Z]\)?|#{1,6}|`{1,2}|~{1,2})\Z")
# The label of a row: "Price: 5 | …".
_LABEL = re.compile(r"[^\n.!?|:]{1,60}:[ \t]")
_LABEL_LENGTH = 62
_CELL_LENGTH = 300  # of a row's first cell; a stream waits no longer for its bar
HEADING = re.compile(r"#{1,6}\s")
_SHORT_LAST_WORD = re.compile(r"(?:^|\s)[a-zà-ÿ'’]{1,3}$")
# A short last word that is a unit ends a row; any other may go on in the next line. Units that are also
# prepositions are left out: "3 a", "12 in", "2 de".
_QUANTITY = re.compile(
    r"\d[ \u00a0\u202f]?(?:h|hs|hrs?|min|sec|s|g|kg|mg|l|cl|ml|m|km|cm|mm|ha|t|lb|oz|ft|mph|w|kw|kwh|v|px|"
    r"[ap]m|eur|ans?|año|mes|día)\Z"
)
_TITLE_LENGTH = 60  # a line this short that the next, capitalised line follows reads as a title

_NO = 0  # no sentence ends here; a boundary is always greater, since a stop stands before it
_WAIT = -1  # more text is needed to tell


def _skip(pattern: re.Pattern[str], text: str, at: int) -> int:
    match = pattern.match(text, at)
    return match.end() if match else at


class Sentence(NamedTuple):
    """One sentence. `start` and `end` count characters of the whole text, without outer white space."""

    start: int
    end: int
    text: str
    before: str  # what stands between the previous sentence and this one: white space, rules
    code: bool  # a line of a fenced code block


def split_sentences(text: str, *, language: str | None = None) -> list[tuple[int, int]]:
    """Offsets [start, end) of the sentences of `text`, in order, without overlap.

    Every letter and digit of the text lies in exactly one sentence. `language` (ISO 639-1)
    narrows the abbreviations to that language's; None takes those of all languages.
    """
    return [(sentence.start, sentence.end) for sentence in read_sentences(text, language=language)]


def read_sentences(text: str, *, language: str | None = None) -> list[Sentence]:
    """As `split_sentences`, with each sentence's text and what stands before it."""
    stream = SentenceStream(language=language)
    return stream.flush(text)


class SentenceStream:
    """Splits a text that arrives in pieces. A sentence comes out as soon as nothing can extend it."""

    def __init__(self, *, language: str | None = None) -> None:
        self._full_stops = _full_stops(language)
        self._text = ""  # what has arrived, from offset _base on
        self._base = 0  # characters already dropped from the front
        self._position = 0  # the first candidate not yet decided
        self._start = 0  # where the sentence at hand begins
        self._last_end = 0  # where the one before it ended
        self._line = -1  # first character of the line at hand; -1 before the first line
        self._row: bool | None = None  # whether that line is a table row, once known
        self._code = False  # whether that line is code
        self._fence: str | None = None  # the open fence's characters
        self._wordless = 0  # up to here the sentence at hand is known to hold no letter or digit

    def feed(self, delta: str) -> list[Sentence]:
        """Takes the next piece; returns the sentences that it completed."""
        self._append(delta)
        sentences = self._scan(final=False)
        self._drop_front()
        return sentences

    def flush(self, delta: str = "") -> list[Sentence]:
        """Takes the last piece; returns every sentence still open."""
        self._append(delta)
        sentences = self._scan(final=True)
        self._emit(len(self._text), sentences)
        return sentences

    def _append(self, delta: str) -> None:
        # Python lengthens a text in its place only where nothing else holds it; copying each time is quadratic.
        text, self._text = self._text, ""
        text += delta
        self._text = text

    def _scan(self, *, final: bool) -> list[Sentence]:
        sentences: list[Sentence] = []
        if self._line < 0 and not self._enter_line(0, final):
            return sentences
        search = _CANDIDATE.search
        while match := search(self._text, self._position):
            at, after = match.span()
            newline = self._text[at] == "\n"
            end = self._at_newline(at, final) if newline else self._at_stop(at, after, final)
            if end == _WAIT:
                self._position = at
                return sentences
            if end != _NO:
                self._emit(end, sentences)
            if newline:
                self._enter_line(_skip(_SPACE, self._text, at), final)
                self._position = max(self._line, end)
            else:
                self._position = max(end, after)
        self._position = len(self._text)
        return sentences

    def _emit(self, end: int, sentences: list[Sentence]) -> None:
        piece = self._text[self._start : end]
        if _ALNUM.search(piece):
            start = self._start + len(piece) - len(piece.lstrip())
            stop = self._start + len(piece.rstrip())
            before = self._text[self._last_end : start]
            sentence = self._text[start:stop]
            sentences.append(Sentence(self._base + start, self._base + stop, sentence, before, self._code))
            self._last_end = stop
        self._start = end

    def _drop_front(self) -> None:
        cut = min(self._last_end, self._line, self._start, self._position)
        if cut < 4096:  # moving the offsets for every sentence would cost more than it frees
            return
        self._text = self._text[cut:]
        self._base += cut
        self._last_end -= cut
        self._line -= cut
        self._start -= cut
        self._position -= cut
        self._wordless -= cut

    def _enter_line(self, at: int, final: bool) -> bool:
        """Makes the line whose first visible character stands at `at` the one at hand."""
        if self._line < 0:
            at = _skip(_SPACE, self._text, at)
            if not final and (at == len(self._text) or _MARKER_OPEN.match(self._text, at)):
                return False
        self._line = at
        self._row = None
        fence = _FENCE.match(self._text, at)
        self._code = fence is not None or self._fence is not None
        if fence is not None:
            if self._fence is None:
                self._fence = fence[0]
            elif self._fence == fence[0]:
                self._fence = None
        return True

    def _at_stop(self, at: int, end: int, final: bool) -> int:
        """Where the sentence ends that the stop [at, end) closes, or _NO, or _WAIT."""
        text, size = self._text, len(self._text)
        if self._code or self._row:
            return _NO
        if end == size and not final:
            return _WAIT
        plain = text[end : end + 1] in (" ", "\n") and text[end + 1 : end + 2] != "»"
        closed = end if plain else _skip(_CLOSERS, text, end)
        if (closed == size or (text[closed] in " \u00a0\u202f" and closed + 1 == size)) and not final:
            return _WAIT
        if at and text[at - 1] in "[(" and closed > end and text[end] in "])":
            return _NO  # an ellipsis: [...]
        marked, after = closed, _skip(_SPACE, text, closed)
        if after == size or text[after] in BEFORE_MARK:
            marked = self._take_marks(closed, final)
            if marked == _WAIT:
                return _WAIT
            after = _skip(_SPACE, text, marked)
        if after == size:
            verdict = _WAIT if not final else marked
        elif marked > closed:
            verdict = marked
        elif after == closed:
            verdict = closed if text[at] in "。！？" or (text[at] in "!?" and text[after] in "¿¡") else _NO
        elif text[after].islower() or text[after] in ",;:)]}»%":
            verdict = _NO
        elif text[at:end] == ".":
            ends = self._full_stops.ends_sentence(text, at, after, start=self._start, line=self._line, final=final)
            verdict = _WAIT if ends is None else closed if ends else _NO
        else:
            verdict = closed
        return verdict if verdict <= 0 else self._unless_row(at, verdict, final)

    def _unless_row(self, at: int, verdict: int, final: bool) -> int:
        """Keeps a table row whole: it starts with a bar, has ` | ` so far, or is `label: value | …`."""
        if self._row is None:
            text, line = self._text, self._line
            row = text.startswith("|", line) or text.find(" | ", line, at) >= 0
            if not row and _LABEL.match(text, line, at):
                end = text.find("\n", at)
                if end < 0 and not final:
                    return _WAIT
                row = text.find(" | ", at, end if end >= 0 else len(text)) >= 0
            self._row = row
        return _NO if self._row else verdict

    def _take_marks(self, at: int, final: bool) -> int:
        """The end of the citation marks that follow `at`, on its line or alone on the next; else `at`."""
        text, end = self._text, at
        if marks := MARKS.match(text, at):
            end = marks.end()
        if not final and MARKS_OPEN.match(text, end):
            return _WAIT
        after = _skip(_SPACE, text, end)
        if after < len(text) and text[after] in OPENING and text.find("\n", end, after) >= 0:
            marks = MARKS.match(text, after)
            if not final and MARKS_OPEN.match(text, marks.end() if marks else after):
                return _WAIT
            if marks and _LINE_END.match(text, marks.end()):
                return marks.end()
        return end

    def _at_newline(self, at: int, final: bool) -> int:
        """Where the sentence ends that the line break at `at` closes, or _NO, or _WAIT."""
        text, size = self._text, len(self._text)
        after = _skip(_SPACE, text, at)
        if after == size:
            return at if final else _WAIT
        if not final and _MARKER_OPEN.match(text, after):
            return _WAIT
        if text[after] in BEFORE_MARK and not self._code and self._has_words(at):
            marked = self._take_marks(at, final)
            if marked == _WAIT or marked > at:
                return marked
        ends: bool | None = (
            self._code
            or text.count("\n", at, after) > 1
            or _MARKER.match(text, after) is not None
            or self._stands_alone(at, text[after])
            or _labelled_row_follows(text, after, final=final, behind_row=text.find(" | ", self._line, at) >= 0)
        )
        if ends is None:
            return _WAIT
        return at if ends and at > 0 else _NO

    def _has_words(self, end: int) -> bool:
        """Whether the sentence at hand holds a letter or digit before `end`; looks at each character once."""
        found = _ALNUM.search(self._text, max(self._start, self._wordless), end)
        self._wordless = found.start() if found else end
        return found is not None

    def _stands_alone(self, at: int, following: str) -> bool:
        """Whether the line at hand, which ends at `at`, is a sentence before the character that follows it."""
        line = self._text[self._line : at]
        if _stands_alone(line, following):
            return True
        return _reads_as_title(line, following) and not self._text[self._start : self._line].strip()


_WORD = re.compile(r"\w+")
_UNIT = re.compile(r"\d[ \u00a0\u202f]?[ghlmt]\Z")  # "14 h", "3,5 m": no abbreviation that a name follows
_LONGEST_ABBREVIATION = 6  # letters of the longest entry without inner stops; a longer word is a word
_LOOK_BACK = 24  # characters


class _FullStops:
    """Knows the abbreviations of a language; of all languages where it is None or not supported."""

    def __init__(self, language: str | None):
        every = [data.sentences for data in languages_of(language)]
        self._always = union_of(data.abbreviations for data in every)
        self._before_number = union_of(data.abbreviations_before_numbers for data in every)
        self._at_end = union_of(data.abbreviations_at_end for data in every)
        self._starters = union_of(data.sentence_starters for data in every)
        self._named_by_letter = union_of(data.named_by_letter for data in every)

    def ends_sentence(self, text: str, at: int, after: int, *, start: int, line: int, final: bool) -> bool | None:
        """Whether the stop at `at` does; None: more text is needed to tell.

        `after` is the next visible character, neither lower case nor a comma; sentence and line begin at `start` and
        `line`; `final` says that no more text comes.
        """
        if at - start > _LONGEST_ABBREVIATION and text[at - _LONGEST_ABBREVIATION - 1 : at].isalpha():
            return True
        tail = text[max(start, at - _LOOK_BACK) : at]
        if not tail or tail[-1].isspace():
            return True
        token = tail.split()[-1].replace("’", "'").rpartition("'")[2].lstrip('([{"«“‘¿¡*_-')
        word = token.lower()
        if len(token) == 1 and token.islower() and _UNIT.search(tail):
            return True
        if word in self._always:
            return False
        if word in self._before_number:
            return not text[after].isdigit()
        if token.isdigit() and len(token) <= 3 and text[line:at] == token:
            return False  # the number of a list item
        is_letter = len(token) == 1 and token.isalpha()
        is_dotted = "." in token and not any(character.isdigit() for character in token)
        if not (is_letter or is_dotted or word in self._at_end) or (is_letter and self._names_by_letter(tail)):
            return True
        following = _WORD.match(text, after)
        if following is None:  # brackets after a company's abbreviation say more about the company
            return is_letter or text[after] != "("
        if following.end() == len(text) and not final:
            return None
        is_initial = len(following[0]) == 1 and text[following.end() : following.end() + 1] == "."  # "S. A."
        return following[0] in self._starters and not is_initial

    def _names_by_letter(self, tail: str) -> bool:
        """Whether the letter at the end is the name of a gate or an annex, and no initial."""
        words = tail.lower().replace("’", " ").replace("'", " ").split()
        return len(words) > 1 and words[-1].isalpha() and words[-2] in self._named_by_letter


_full_stops = cache(_FullStops)


def _stands_alone(line: str, following: str) -> bool:
    """Whether a line is a heading, a row or a lead-in, given the first visible character behind it."""
    if HEADING.match(line):
        return True
    shown = line.rstrip()
    if not shown or following.islower():
        return False  # also a row whose last cell runs on
    return shown[-1] == ":" or shown[0] == "|" or " | " in shown


def _reads_as_title(line: str, following: str) -> bool:
    """Likewise, whether a line that begins a sentence is all of it, as a title is, and no part of wrapped text."""
    shown = line.rstrip()
    return (
        0 < len(shown) <= _TITLE_LENGTH
        and (following.isupper() or following in '¿¡"«“*_')
        and shown[-1] not in ",;-–—(/.…"
        and (_SHORT_LAST_WORD.search(shown) is None or _QUANTITY.search(shown) is not None)
    )


def _labelled_row_follows(text: str, start: int, *, final: bool, behind_row: bool) -> bool | None:
    """Whether the line that begins at `start` is a row like "label: value | …"; None: too soon to tell.

    The title above a sheet would else read as one sentence with its first row, and rows of tables whose labels are
    in lower case as one that runs on. `behind_row`: the line before is a row, so that a label is enough.
    """
    end = text.find("\n", start, start + _CELL_LENGTH)
    is_whole = final or end >= 0
    if not _LABEL.match(text, start):
        return False if is_whole or len(text) - start > _LABEL_LENGTH else None
    if text[start].islower() and behind_row:
        return True
    if text.find(" | ", start, end if end >= 0 else start + _CELL_LENGTH) >= 0:
        return True
    return False if is_whole or len(text) - start > _CELL_LENGTH else None
