"""What a page hides, strikes out, raises and lowers: by attributes, and by its rules for tags, classes and ids.

Nobody sees what is not displayed or invisible, lies off the screen, is cut to nothing, has the size 0, is transparent
for good, or has the colour of its own ground. Of `@media` counts what holds on every screen. Rules that look at more
than the element itself (`.menu:hover .sub`, or one within another) hide nothing, and what such a rule may show is kept.
A page that hides all of itself is shown by its script.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import NamedTuple

from lxml import etree

from rag_service.readers.common.xml import Element, local_name

_MAX_RULES = 2_000  # that count; each costs time for every element with one of its names
_COMMENT_OR_QUOTED = re.compile(
    r"""/\*.*?(?:\*/|\Z)|<!--|-->|(")(?>(?:[^"\\\n]++|\\.)*)"?|(')(?>(?:[^'\\\n]++|\\.)*)'?""", re.DOTALL
)
_END = re.compile(r"([{};])")
_BRACKET = re.compile(r"([()\[\]])")
_SCREEN = re.compile(r"@media\s+(?:only\s+)?(?:all|screen)|@layer\b.*", re.IGNORECASE | re.DOTALL)
_SIMPLE = re.compile(r"(?:\*|[a-z][\w-]*)?(?:[.#][\w-]+)*", re.IGNORECASE)
_LAST = re.compile(r"(?:.*[\s>+~])?([^\s>+~]+)", re.DOTALL)  # the part of a selector that names the element
_CONDITION = re.compile(r"::?[\w-]+")
_NAME = re.compile(r"([.#]?)([\w-]+|\*)")
_NOT_CONTENT = frozenset({"script", "style", "noscript", "template", "nav", "aside", "footer", "head", "title"})

_FRAME = frozenset({"html", "body"})

_PLAIN = {"display": "", "visibility": "", "unseen": "", "size": "", "line": "", "script": "", "apart": ""}
_LOOKS = {"line-through": "struck", "super": "sup", "sub": "sub"}
_NOT_SHOWN = frozenset({"none", "hidden", "collapse", "unseen", "0", "apart", *_LOOKS})
_OFF_SCREEN = re.compile(r"-\s*(?:\d{4,}|[1-9]\d{2,}(?:\.\d+)?(?:em|rem|%|vw|vh))")
_CLIPPED = re.compile(r"rect\((?:\s*[01](?:px)?[\s,]*){4}\)|inset\((?:50|100)%\)")
_NOTHING = re.compile(r"[01](?:px)?")
_ZERO = re.compile(r"(?:0+(?:\.0*)?|\.0+)(?:px|em|rem|pt|%)?")
_MOVES = ("transition", "animation", "transform", "will-change")  # a script shows it in a moment
_OWN_BOX = frozenset(
    {"inline-block", "inline-flex", "inline-grid", "inline-table", "table-cell", "block", "flex", "grid"}
)
_Rank = tuple[bool, bool, int, int]  # is important, is the element's own, specificity, place: the highest holds


class _Rule(NamedTuple):
    names: frozenset[str]  # of tag, classes and id, as a selector writes them
    property: str
    value: str
    rank: _Rank
    is_simple: bool  # else only what it shows counts


class Looks(NamedTuple):
    """What the styles of a page say about its text."""

    emptied: list[Element]  # held hidden words of which nothing is left
    kinds: dict[Element, str]  # of what is left: struck, sup or sub


def drop_hidden(root: Element, style: str = "") -> Looks:
    """Take hidden elements out of a page, and set figures in boxes of their own apart from what is beside them.

    `style` is the text of style sheets besides those within the page.
    """
    rules = _by_name(islice(_rules("\n".join([style, *map(_sheet, root.iter("style"))])), _MAX_RULES))
    gone: list[Element] = []
    silent: list[Element] = []  # invisible, but in its place
    shown: dict[Element, bool] = {}  # visibility, which elements inherit
    kinds: dict[Element, str] = {}
    boxes: list[Element] = []
    walk = etree.iterwalk(root, events=("start",))
    for _, element in walk:
        if local_name(element) in _FRAME:
            continue
        look = _look(element, rules)
        if element is not root and (look["display"] == "none" or look["unseen"] or _is_spoken_over(element)):
            gone.append(element)
            walk.skip_subtree()
            continue
        is_inherited = not look["visibility"]
        shown[element] = (
            shown.get(element.getparent(), True) if is_inherited else look["visibility"] not in ("hidden", "collapse")
        )
        if not shown[element] or look["size"]:
            silent.append(element)
        if kind := _LOOKS.get(look["line"] or look["script"]):
            kinds[element] = kind
        if look["apart"]:
            boxes.append(element)
    told = [parent for parent, words in [*map(_words, gone), *map(_own_words, silent)] if words]
    for element in silent:
        element.text = None
        element.attrib.pop("alt", None)
        for child in element:
            child.tail = None
    for element in gone:
        element.drop_tree()
    for element in boxes:
        _set_apart(element)
    emptied = [one for one in told if _NOT_CONTENT.isdisjoint(map(local_name, (one, *one.iterancestors())))]
    return Looks(emptied, kinds)


def _set_apart(element: Element) -> None:
    """Part a figure in a box of its own from the letters and figures beside it, which only its place does."""
    text, tail = "".join(element.itertext()), element.tail or ""
    before = element.getprevious()
    beside = element.getparent().text if before is None else before.tail or "".join(before.itertext())
    if text[:1].isdigit() and (beside or " ")[-1] not in " (\n":
        element.text = f" {element.text or ''}"
    if text[-1:].isdigit() and tail[:1].isalnum():
        element.tail = f" {tail}"


def _words(element: Element) -> tuple[Element, bool]:
    is_content = local_name(element) not in _NOT_CONTENT
    return element.getparent(), is_content and any(map(str.isalnum, "".join(element.itertext())))


def _own_words(element: Element) -> tuple[Element, bool]:
    own = "".join([element.text or "", *(child.tail or "" for child in element)])
    return element, any(map(str.isalnum, own))


def _is_spoken_over(element: Element) -> bool:
    """Whether programs that read the page aloud pass over it: it repeats or adorns what stands there."""
    return (element.get("aria-hidden") or "").lower() == "true"


def _look(element: Element, rules: Mapping[str, list[_Rule]]) -> Mapping[str, str]:
    """The values of the properties that hold for an element; empty where nothing says them."""
    if not rules and not element.attrib and element.tag != "dialog":
        return _PLAIN
    best: dict[str, tuple[_Rank, str]] = {}
    hidden = (element.get("hidden") or "").lower() != "until-found" and element.get("hidden") is not None
    hidden = hidden or (element.tag == "dialog" and element.get("open") is None)
    found = [("display", "none", (False, False, -1, 0))] if hidden else []
    for name, value, important in _declarations(_settle(element.get("style") or "")):
        found.append((name, value, (important, True, 0, 0)))
    names = {local_name(element), "*", *(f".{word}" for word in (element.get("class") or "").split())}
    names |= {f"#{element.get('id')}"} if element.get("id") else set()
    may_show: set[str] = set()
    for name in names & rules.keys():
        for rule in rules[name]:
            if not rule.names <= names:
                continue
            if rule.is_simple:
                found.append((rule.property, rule.value, rule.rank))
            elif rule.value not in _NOT_SHOWN:
                may_show.add(rule.property)
    for name, value, rank in found:
        if name not in best or rank >= best[name][0]:
            best[name] = (rank, value)
    values = {name: value for name, (rank, value) in best.items() if name not in may_show or rank[0] or rank[1]}
    return {**_PLAIN, **values}


def _by_name(rules: Iterator[_Rule]) -> dict[str, list[_Rule]]:
    """The rules by one of the names that an element must have."""
    found: dict[str, list[_Rule]] = {}
    for rule in rules:
        found.setdefault(min(rule.names, default="*"), []).append(rule)
    return found


def _rules(sheet: str) -> Iterator[_Rule]:
    for place, (selectors, body, is_nested) in enumerate(_blocks(_settle(sheet))):
        for name, value, important in _declarations(body):
            for selector in _without_brackets(selectors).split(","):
                selector = selector.strip()
                last = _LAST.fullmatch(selector)
                if last is None:
                    continue
                bare = _CONDITION.sub("", last[1])
                if is_nested:  # what it stands in is one more condition
                    bare = bare.removeprefix("&")
                if not _SIMPLE.fullmatch(bare) or (is_nested and not bare):
                    continue
                parts = _NAME.findall(bare)
                names = frozenset(f"{mark}{word}" if mark else word.lower() for mark, word in parts)
                weight = sum({"#": 10_000, ".": 100}.get(mark, int(word != "*")) for mark, word in parts)
                rank = (important, False, weight, place)
                yield _Rule(names, name, value, rank, bare == selector and not is_nested)


def _settle(sheet: str) -> str:
    """Without comments, and without what quotes say: a brace in them is none."""
    return _COMMENT_OR_QUOTED.sub(r"\1\1\2\2", sheet)


def _declarations(body: str) -> Iterator[tuple[str, str, bool]]:
    """(property, value, is important) of those that count; what several say together is a property of its own."""
    said: dict[str, str] = {}
    for declaration in body.split(";"):
        name, _, words = declaration.partition(":")
        name = name.strip().lower()
        value, mark, more = words.partition("!")
        important = more.strip().lower() == "important"
        if value.strip() and important == bool(mark):
            said[name] = value.strip().lower()
            if name in ("display", "visibility"):
                yield name, value.split()[0].lower(), important
    if not said.keys().isdisjoint(_TELLING):
        yield from ((name, value, False) for name, value in _derived(said))


_TELLING = frozenset({
    "text-decoration", "text-decoration-line", "vertical-align", "position", "text-indent", "font-size", "opacity",
    "color", "clip", "clip-path", "float", "display",
})  # fmt: skip


def _derived(said: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """What declarations of a rule say together."""
    if "line-through" in said.get("text-decoration", "") + said.get("text-decoration-line", ""):
        yield "line", "line-through"
    if said.get("vertical-align") in ("super", "sub"):
        yield "script", said["vertical-align"]
    if _is_unseen(said):
        yield "unseen", "unseen"
    elif _ZERO.fullmatch(said.get("font-size", "1")):
        yield "size", "0"
    is_placed = said.get("position") in ("absolute", "fixed")
    if said.get("display") in _OWN_BOX or is_placed or said.get("float", "none") != "none":
        yield "apart", "apart"


def _is_unseen(said: Mapping[str, str]) -> bool:
    is_placed = said.get("position") in ("absolute", "fixed")
    if is_placed and any(_OFF_SCREEN.match(said.get(side, "")) for side in ("left", "top", "right", "bottom")):
        return True
    if _OFF_SCREEN.match(said.get("text-indent", "")):
        return True
    if is_placed and (_CLIPPED.match(said.get("clip", "")) or _CLIPPED.match(said.get("clip-path", ""))):
        return True
    is_nothing = all(_NOTHING.fullmatch(said.get(side, "")) for side in ("width", "height"))
    if is_placed and is_nothing and said.get("overflow") == "hidden":
        return True
    if _ZERO.fullmatch(said.get("opacity", "1")):
        return said.keys().isdisjoint(_MOVES)
    ground = said.get("background-color") or said.get("background") or ""
    return bool(ground) and said.get("color") == ground


def _without_brackets(selectors: str) -> str:
    """Selectors with a mark in place of conditions in brackets, which may hold commas; empty if they do not match."""
    depth, kept = 0, list[str]()
    for part in _BRACKET.split(selectors):
        if part in ("(", "["):
            kept.append(":in" if part == "[" and not depth else "")
            depth += 1
        elif part in (")", "]"):
            depth -= 1
        elif depth == 0:
            kept.append(part)
    return "" if depth else "".join(kept)


class _Block(NamedTuple):
    """What is between two braces."""

    selectors: str  # empty: an at-rule that is in no rule
    holds: bool  # on every screen
    is_nested: bool  # in another rule
    declared: list[str]


def _blocks(sheet: str) -> Iterator[tuple[str, str, bool]]:
    """(selectors, declarations, is within another one) of the rules that hold on every screen."""
    around = [_Block("", True, False, [])]
    pieces = _END.split(sheet)
    for words, end in zip(map(str.strip, pieces[::2]), pieces[1::2], strict=False):
        block = around[-1]
        if end == "{":
            if words.startswith("@"):
                holds = block.holds and bool(_SCREEN.fullmatch(words))
                around.append(_Block(block.selectors, holds, block.is_nested, []))
            else:
                around.append(_Block(words, block.holds, bool(block.selectors), []))
            continue
        block.declared.append(words)
        if end == "}" and len(around) > 1:
            around.pop()
            if block.selectors and block.holds:
                yield block.selectors, ";".join(block.declared), block.is_nested


def _sheet(style: Element) -> str:
    """The text of a style element, unless it is meant for something other than screens."""
    media = (style.get("media") or "all").strip().lower()
    return "".join(style.itertext()) if media in ("all", "screen") else ""
