"""Rich Text Format: paragraphs, headings, table rows and footnotes.

A reader of the control words that carry text (RTF 1.9.1, Microsoft 2008); pictures, fields' codes and unknown
destinations are skipped.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass, field, replace

from rag_service.domain import ParsedDocument
from rag_service.errors import DocumentError
from rag_service.readers.common.blocks import BlockWriter
from rag_service.readers.common.builder import HIDDEN, STRUCK_OUT, TextBuilder, clean, one_line, pictures_not_read
from rag_service.readers.common.cells import Cell, Row, is_number_like
from rag_service.readers.common.names import choose_title
from rag_service.readers.common.superscripts import lower_run, raise_run

MEDIA_TYPE = "application/rtf"
_TOKEN = re.compile(
    rb"\\([a-zA-Z]{1,32})(-?\d{1,10})? ?|\\'([0-9a-fA-F]{2})|\\([^a-zA-Z'])|([{}])|[\r\n]+|([^\\{}\r\n]+)"
)
_SIGNS = {
    "tab": "\t", "line": "\n", "emdash": "—", "endash": "–", "lquote": "‘", "rquote": "’", "ldblquote": "“",
    "rdblquote": "”", "bullet": "•", "emspace": " ", "enspace": " ", "qmspace": " ",
}  # fmt: skip
_SYMBOLS = {b"~": "\u00a0", b"-": "", b"_": "-", b"\n": "\n", b"\r": "\n", b"\\": "\\", b"{": "{", b"}": "}"}
_SKIPPED = frozenset({
    "fonttbl", "colortbl", "stylesheet", "info", "pict", "object", "themedata", "colorschememapping",
    "latentstyles", "datastore", "generator", "listtable", "listoverridetable", "rsidtbl", "xmlnstbl",
    "fldinst", "revtbl", "bkmkstart",
    "bkmkend", "nonshppict", "pgptbl", "filetbl",
})  # fmt: skip
_EDGES = {f"{kind}{which}": f"page {kind}" for kind in ("header", "footer") for which in ("", "l", "r", "f")}
_OF_EDGES = {"par": "\n", "row": "\n", "cell": " | "}
_TITLE, _STYLES = "title", "stylesheet"
_MARKS = frozenset({"listtext", "pntext"})  # what programs that know no lists show before an item
_CODE_PAGES = {  # of fonts: \fcharset → Python's name
    0: "cp1252", 77: "mac_roman", 128: "cp932", 129: "cp949", 134: "gbk", 136: "big5", 161: "cp1253", 162: "cp1254",
    163: "cp1258", 177: "cp1255", 178: "cp1256", 186: "cp1257", 204: "cp1251", 222: "cp874", 238: "cp1250",
}  # fmt: skip
_SCRIPTS = {"super": 1, "up": 1, "sub": -1, "dn": -1, "nosupersub": 0}
_MAX_DEPTH = 1_000


@dataclass(frozen=True)
class _Group:
    """What a closing brace restores."""

    destination: str = ""  # "" is the text; others are skipped but for notes, edges, fonts and title
    unicode_skip: int = 1  # characters that follow \\u for programs without Unicode
    encoding: str = "cp1252"
    is_hidden: bool = False
    is_struck: bool = False  # or deleted
    script: int = 0  # 1: raised, -1: lowered


@dataclass
class _Paragraph:
    pieces: list[str] = field(default_factory=list)
    mark: list[str] = field(default_factory=list)  # of a list item
    level: int | None = None  # of a heading
    in_table: bool = False


def parse_rtf(data: bytes, *, name: str) -> ParsedDocument:
    """Read a document; places as in DOCX. Raises DocumentError without text or nested too deeply, and TooLargeError."""
    writer = BlockWriter(TextBuilder(name))
    reader = _Reader(writer, name)
    reader.read(data)
    return writer.builder.build(title=choose_title(name, reader.title, writer.title), media_type=MEDIA_TYPE)


class _Reader:
    def __init__(self, writer: BlockWriter, name: str):
        self._writer, self._name = writer, name
        self._group = _Group()
        self._stack: list[_Group] = []
        self._is_opened = False  # a group, just now
        self._paragraph = _Paragraph()
        self._bytes = bytearray()  # of the code page, not yet decoded
        self._skip = 0  # characters left of the fallback of \\u
        self._cells: list[str] = []
        self._rows: list[list[str]] = []
        self._notes: list[str] = []  # of the paragraph that is open
        self._note_count = 0
        self._note: list[str] = []
        self._edges: dict[str, list[str]] = {}  # page headers and footers, by their destination
        self._pictures = 0
        self._fonts: dict[int, str] = {}
        self._font = 0
        self._levels: dict[int, int] = {}  # style number → heading level
        self._style_number = 0
        self._style_name: list[str] = []
        self._title: list[str] = []

    @property
    def title(self) -> str:
        return one_line("".join(self._title))

    def read(self, data: bytes) -> None:
        place = 0
        while place < len(data):
            match = _TOKEN.match(data, place)
            if match is None:
                place += 1
                continue
            place = match.end()
            word, number, code, symbol, brace, text = match.groups()
            if word is not None:
                if word == b"bin" and number:
                    place += max(int(number), 0)
                    continue
                self._control(word.decode("ascii"), None if number is None else int(number))
            elif code is not None:
                self._add_bytes(bytes([int(code, 16)]))
            elif brace == b"{":
                self._open()
            elif brace == b"}":
                self._close()
            elif symbol == b"*":
                if self._is_opened:  # elsewhere it says nothing
                    self._group = replace(self._group, destination="*")
            elif symbol is not None:
                if symbol in b"\n\r":
                    self._end_paragraph()
                else:
                    self._add(_SYMBOLS.get(symbol, ""))
            elif text is not None:
                self._add_bytes(text)
            if match.lastindex is not None:  # else a line ends, which says nothing
                self._is_opened = brace == b"{"
        self._end()

    def _end(self) -> None:
        """Write what is still open."""
        if self._cells:
            self._rows.append(self._cells)
        self._paragraph.in_table = False
        self._end_paragraph()
        self._end_table()
        self._write_edges()
        if self._pictures:
            self._writer.builder.warn(pictures_not_read(self._pictures))

    def _open(self) -> None:
        self._decode()
        if len(self._stack) > _MAX_DEPTH:
            raise DocumentError(f'"{self._name}" is nested too deeply to be read. Save it as .docx and upload that.')
        self._stack.append(self._group)

    def _close(self) -> None:
        self._decode()
        closed = self._group
        if self._stack:
            self._group = self._stack.pop()
        if closed.destination == "footnote" and self._group.destination != "footnote":
            self._notes.append("".join(self._note))
            self._note.clear()
        elif closed.destination == _STYLES:
            words = "".join(self._style_name).strip(" ;").lower().split()
            if len(words) == 2 and words[0] == "heading" and words[1].isdigit():
                self._levels.setdefault(self._style_number, int(words[1]))
            self._style_name.clear()

    def _control(self, word: str, number: int | None) -> None:
        if word == "u" and number is not None:
            self._decode()
            self._add(chr(number % 65_536))
            self._skip = self._group.unicode_skip
            return
        self._decode()
        group = self._group
        if word == "pict" and not any(one.destination in _SKIPPED for one in (*self._stack, group)):
            self._pictures += 1
        if word in _SKIPPED or word in _EDGES or word in _MARKS or word in (_TITLE, "footnote"):
            self._group = replace(group, destination=word)
            if word == _TITLE:
                self._title.clear()  # \\upr gives it twice, the second time in Unicode
        elif word == "shptxt":
            self._group = replace(group, destination="")
        elif word == "uc":
            self._group = replace(group, unicode_skip=number or 0)
        elif word == "ansicpg" and number:
            self._fonts[-1] = _codec(f"cp{number}")
            self._group = replace(group, encoding=self._fonts[-1])
        elif word == "f" and number is not None:
            self._font = number
            self._group = replace(group, encoding=self._fonts.get(number, self._fonts.get(-1, "cp1252")))
        elif word == "fcharset" and number:
            self._fonts[self._font] = _codec(_CODE_PAGES.get(number, "cp1252"))
        elif word == "v":
            self._group = replace(group, is_hidden=number != 0)
        elif word in ("strike", "striked", "deleted"):
            self._group = replace(group, is_struck=number != 0)
        elif word in _SCRIPTS:
            self._group = replace(group, script=_SCRIPTS[word] * (number != 0))
        elif word == "plain":
            self._group = replace(group, is_hidden=False, is_struck=False, script=0)
        elif group.destination == _STYLES:
            if word == "s":
                self._style_number = number or 0
            elif word == "outlinelevel" and number is not None and number < 9:
                self._levels[self._style_number] = number + 1
        elif group.destination in _EDGES:
            self._add(_OF_EDGES.get(word) or _SIGNS.get(word, ""))
        elif group.destination == "footnote" or group.destination in _MARKS:
            self._add(" " if word == "par" else _SIGNS.get(word, ""))
        elif group.destination == "":
            self._text_control(word, number)

    def _text_control(self, word: str, number: int | None) -> None:
        if word in _SIGNS:
            self._add(_SIGNS[word])
        elif word in ("par", "sect", "page"):
            self._end_paragraph()
        elif word == "pard":
            self._paragraph.level, self._paragraph.in_table = None, False
        elif word == "s":
            self._paragraph.level = self._levels.get(number or 0)
        elif word == "outlinelevel" and number is not None:
            self._paragraph.level = number + 1 if number < 9 else None
        elif word == "intbl":
            self._paragraph.in_table = True
        elif word in ("cell", "nestcell"):
            self._cells.append(one_line(f"{self._take_mark()} {''.join(self._paragraph.pieces)}"))
            self._paragraph.pieces = []
        elif word in ("row", "nestrow"):
            self._rows.append(self._cells)
            self._cells = []

    def _add_bytes(self, data: bytes) -> None:
        if self._skip:
            dropped = min(self._skip, len(data))
            self._skip -= dropped
            data = data[dropped:]
        self._bytes += data

    def _decode(self) -> None:
        if self._bytes:
            text = bytes(self._bytes).decode(self._group.encoding, errors="replace")
            self._bytes.clear()
            self._add(text)

    def _add(self, text: str) -> None:
        self._skip = 0 if text else self._skip
        if self._bytes:
            self._decode()
        destination = self._group.destination
        if not text or self._is_dropped(destination):
            return
        if self._group.script:
            text = raise_run(text) if self._group.script > 0 else lower_run(text)
        if destination == "":
            self._paragraph.pieces.append(text)
        elif destination in _MARKS:
            self._paragraph.mark.append(text)
        elif destination == "footnote":
            self._note.append(text)
        elif destination in _EDGES:
            self._edges.setdefault(destination, []).append(text)
        elif destination == _STYLES:
            self._style_name.append(text)
        elif destination == _TITLE:
            self._title.append(text)

    def _is_dropped(self, destination: str) -> bool:
        if not (self._group.is_hidden or self._group.is_struck):
            return False
        if destination in ("", "footnote"):
            self._writer.builder.warn(HIDDEN if self._group.is_hidden else STRUCK_OUT)
        return True

    def _end_paragraph(self) -> None:
        self._decode()
        paragraph = self._paragraph
        if paragraph.in_table:  # a cell goes on
            paragraph.pieces.append(" ")
            return
        mark = self._take_mark()
        text = _join_surrogates("".join(paragraph.pieces))
        paragraph.pieces = []
        if text.strip() or self._notes:
            self._end_table()
        if paragraph.level:
            self._writer.write_heading(text if mark == "-" else f"{mark} {text}", paragraph.level)
        elif mark and text.strip():
            self._writer.write_paragraph(f"{mark} {text.strip()}", ending="\n")
        else:
            self._writer.write_paragraph(text)
        self._write_notes()

    def _take_mark(self) -> str:
        """What stands before the paragraph that ends: a number, a dash for any bullet, or nothing."""
        mark = one_line("".join(self._paragraph.mark))
        self._paragraph.mark = []
        return mark if any(map(str.isalnum, mark)) or not mark else "-"

    def _write_notes(self) -> None:
        for note in self._notes:
            self._note_count += 1
            self._writer.write_paragraph(one_line(_join_surrogates(note)), part=f"footnote {self._note_count}")
        self._notes.clear()

    def _write_edges(self) -> None:
        """Write page headers and footers, each line once; those without words are page numbers."""
        self._writer.begin()
        written: set[str] = set()
        for destination, pieces in self._edges.items():
            for line in (one_line(text).strip("| ") for text in _join_surrogates("".join(pieces)).split("\n")):
                if line not in written and any(map(str.isalpha, line)):
                    written.add(line)
                    self._writer.write_paragraph(line, part=_EDGES[destination])

    def _end_table(self) -> None:
        rows = []
        for number, texts in enumerate(self._rows, start=1):
            shown = ((column, _join_surrogates(text)) for column, text in enumerate(texts, start=1) if text)
            cells = [Cell(column, text, not is_number_like(text)) for column, text in shown]
            if cells:
                rows.append(Row(number, cells))
        self._rows = []
        if rows:
            self._writer.write_table(rows)
            self._write_notes()


def _join_surrogates(text: str) -> str:
    r"""Characters beyond 65,535 are two \u in RTF."""
    return clean(text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace"))


def _codec(name: str) -> str:
    try:
        codecs.lookup(name)
    except LookupError:
        return "cp1252"
    return name
