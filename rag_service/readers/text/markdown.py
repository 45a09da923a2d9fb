"""Markdown: the source text without its front matter, one span per block with its heading path."""

from __future__ import annotations

import datetime
import math
import re
import tomllib
from collections.abc import Iterator, Sequence
from itertools import count, pairwise
from typing import Any

import yaml
from markdown_it import MarkdownIt
from markdown_it.token import Token

from rag_service.domain import Location, ParsedDocument
from rag_service.readers.common.builder import STRUCK_OUT, TextBuilder, clean, one_line
from rag_service.readers.common.cells import Cell, Row, is_number_like
from rag_service.readers.common.names import choose_title, language_of
from rag_service.readers.common.superscripts import lower_run, raise_run
from rag_service.readers.common.tables import write_table

_FRONT_MATTER = re.compile(r"---[ \t]*\n(.*?)^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_TOML_MATTER = re.compile(r"\+\+\+[ \t]*\n(.*?)^\+\+\+[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_MARKUP = re.compile(r"[*_`\[<\\&]")
_MAX_FRONT_MATTER = 65_536  # characters
# Code, which stays as it is; the end of a paragraph, where nothing that is open goes on; marks of characters.
_CHARACTERS = re.compile(
    r"(?P<code>^(?P<fence>`{3}|~{3})[^\n]*\n(?:(?!(?P=fence))[^\n]*\n)*(?:(?P=fence).*)?|(?<!`)(?P<ticks>`{1,3})(?!`)[^`\n]+(?P=ticks))"
    r"|(?P<comment><!--)"
    r"|(?P<end>\n[ \t]*\n)|\[\^(?P<note>[^\s\[\]^]{1,60})\](?P<definition>:?)"
    r"|(?<![~\\])(?P<tildes>~~)(?!~)|<(?P<closing>/?)(?P<tag>sup|sub|s|del|strike)\b[^<>\n]{0,200}>",
    re.MULTILINE | re.IGNORECASE,
)
_PLAIN_NOTE = re.compile(r"\d{1,3}|[a-z]", re.IGNORECASE)
_MAX_OPEN = 10  # marks of characters within each other


class _PlainLoader(yaml.SafeLoader):
    """YAML without aliases: a few lines of them can expand to gigabytes ("billion laughs")."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("aliases are not allowed")
        return super().compose_node(parent, index)


def parse_markdown(source: str, *, name: str) -> ParsedDocument:
    """Keep the readable source; front matter becomes metadata, title and language.

    Each top-level block (paragraph, list, table, code) is one span whose `headings` is the path of the
    headings above it. The title is the front matter's, else the first level-1 heading, else the file name.
    Front matter is YAML between `---` or TOML between `+++`; a block that is neither stays part of the text.
    """
    metadata, body = _split_front_matter(clean(source))
    builder = TextBuilder(name)
    body = clean(_settle_characters(body.strip("\n"), builder))
    first_heading = _write_blocks(builder, body)
    return builder.build(
        title=choose_title(name, metadata.get("title"), first_heading),
        media_type="text/markdown",
        language=language_of(metadata.get("language")) or language_of(metadata.get("lang")),
        metadata=metadata,
    )


def _settle_characters(body: str, builder: TextBuilder) -> str:
    """Write raised and lowered runs and footnote marks as all readers do; drop comments and what is struck out."""
    pieces: list[str] = []
    opened: list[tuple[str, int]] = []  # (mark, its piece)
    done = 0
    comment_end = paragraph_end = -1  # the next ones
    note_marks = _number_notes(body)
    for match in _CHARACTERS.finditer(body):
        if match.start() < done:
            continue
        pieces.append(body[done : match.start()])
        done = match.end()
        if match["comment"]:
            comment_end = comment_end if comment_end >= done else _after(body, "-->", done)
            paragraph_end = paragraph_end if paragraph_end >= done else _after(body, "\n\n", done)
            is_block = match.start() == 0 or body[match.start() - 1] == "\n"
            if comment_end <= len(body) and (is_block or comment_end < paragraph_end):
                done = comment_end
            else:
                pieces.append(match[0])
            continue
        mark = match["tildes"] or (match["tag"] or "").lower()
        if match["note"]:
            pieces.append(raise_run(note_marks[match["note"]]))
        elif mark and opened and opened[-1][0] == mark and (match["tildes"] or match["closing"]):
            _, start = opened.pop()
            inside = "".join(pieces[start + 1 :])
            del pieces[start:]
            if mark in ("sup", "sub"):
                pieces.append(raise_run(inside) if mark == "sup" else lower_run(inside))
            else:
                builder.warn(STRUCK_OUT)
        else:
            if mark and not match["closing"] and len(opened) < _MAX_OPEN:
                opened.append((mark, len(pieces)))
            elif match["end"]:
                opened.clear()
            pieces.append(match[0])
    return "".join([*pieces, body[done:]])


def _number_notes(body: str) -> dict[str, str]:
    """The mark of each footnote: a number or letter as it is, for a name the next free number, as pages show it."""
    names = dict.fromkeys(match["note"] for match in _CHARACTERS.finditer(body) if match["note"])
    plain = {name for name in names if _PLAIN_NOTE.fullmatch(name)}
    free = (str(number) for number in count(1) if str(number) not in plain)
    return {name: name if name in plain else next(free) for name in names}


def _after(text: str, mark: str, start: int) -> int:
    """The place behind the next mark; behind the text if there is none."""
    found = text.find(mark, start)
    return len(text) + 1 if found < 0 else found + len(mark)


def _split_front_matter(text: str) -> tuple[dict[str, Any], str]:
    head = text[: _MAX_FRONT_MATTER + 10]
    match = _FRONT_MATTER.match(head) or _TOML_MATTER.match(head)
    if match is None:
        return {}, text
    try:
        # A SafeLoader by descent: it builds plain values only.
        is_toml = match.re is _TOML_MATTER
        values = tomllib.loads(match[1]) if is_toml else yaml.load(match[1], Loader=_PlainLoader)  # noqa: S506
    except (yaml.YAMLError, ValueError, RecursionError):
        return {}, text
    if not isinstance(values, dict):
        return {}, text
    return {one_line(str(key)): _plain_value(value) for key, value in values.items()}, text[match.end() :]


def _plain_value(value: Any) -> Any:
    """A JSON value that can be stored: dates become ISO text."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, bool | int | None):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, datetime.date | datetime.datetime):
        return value.isoformat()
    if isinstance(value, list | tuple | set):
        return [_plain_value(item) for item in value]
    if isinstance(value, dict):
        return {one_line(str(key)): _plain_value(item) for key, item in value.items()}
    return clean(str(value))


def _write_blocks(builder: TextBuilder, body: str) -> str | None:
    """Write the source block by block; return the text of the first level-1 heading."""
    parser = MarkdownIt("commonmark").enable("table")
    parser.disable("inline")  # only blocks are needed, which takes a tenth of the time
    tokens = parser.parse(body)
    lines = body.splitlines(keepends=True)
    path: list[tuple[int, str]] = []
    first_heading = None
    done = 0
    for position, token in enumerate(tokens):
        if token.level != 0 or token.map is None or token.nesting < 0:
            continue
        start, end = token.map
        if start < done:
            continue
        if token.type == "heading_open":
            depth, title = int(token.tag[1:]), _plain_text(tokens[position + 1])
            path = [entry for entry in path if entry[0] < depth] + [(depth, title)]
            first_heading = first_heading or (title if depth == 1 else None)
        builder.write("".join(lines[done:start]))
        titles = tuple(title for _, title in path if title)
        if token.type == "table_open":
            _write_rows(builder, tokens[position:], titles)
            done = end
            continue
        block = "".join(lines[start:end])
        ending = len(block) - len(block.rstrip("\n"))
        builder.write(block[: len(block) - ending], Location(headings=titles))
        builder.write(block[len(block) - ending :])
        done = end
    builder.write("".join(lines[done:]))
    return first_heading


def _write_rows(builder: TextBuilder, tokens: Sequence[Token], headings: tuple[str, ...]) -> None:
    """Write the table that begins the tokens as labelled lines, each value a cell as in the tables of other formats."""

    def place(row: int, cell: str | None) -> Location:
        return Location(headings=headings, row=row, cell=cell)

    write_table(builder, _rows(tokens), place=place)


def _rows(tokens: Sequence[Token]) -> Iterator[Row]:
    number, cells = 0, list[Cell]()
    column, in_head = 0, False
    for before, token in pairwise(tokens):
        if token.type == "table_close":
            return
        if token.type == "tr_open":
            number, column, cells = number + 1, 0, []
        elif token.type == "inline":
            column, in_head = column + 1, before.type == "th_open"
            text = _plain_text(token) if _MARKUP.search(token.content) else one_line(token.content)
            if text:
                cells.append(Cell(column, text, not is_number_like(text), is_strong=in_head))
        elif token.type == "tr_close" and cells:
            yield Row(number, cells, is_header=in_head)


def _plain_text(inline: Token) -> str:
    """The text of a heading or a cell without emphasis, links and code marks."""
    tokens = MarkdownIt("commonmark").parseInline(inline.content[:1000])
    children = tokens[0].children or [] if tokens else []
    words = "".join(" " if child.type.endswith("break") else child.content for child in children)
    return one_line(re.sub(r"<[^>]{0,200}>", " ", words))
