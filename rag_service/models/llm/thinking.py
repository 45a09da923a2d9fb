"""Keeps what a model thinks aloud out of its answer, while the answer streams.

A server without a reasoning parser sends thoughts as text, in the spelling of the model:

- A block at the beginning of the message, `<think>…</think>` and its kin; several may follow each other, and one that
  is never closed reaches to the end. Further on, such tags are text: an answer may quote them.
- Only the closing mark, because the chat template has written the opening one into the prompt. Nothing shows before it
  comes that the text is thought, and an answer must not wait for a mark that nearly no model sends. So the text
  streams, and the mark takes it back (`Piece.restart`). A model that did so once does so always: with `hold`, which
  `ChatModel` sets from then on, nothing is given out before the mark, or the end.
- Channels, anywhere: of gpt-oss's messages only those on the channel `final` are the answer
  (https://cookbook.openai.com/articles/openai-harmony).

Spellings: https://docs.openwebui.com/features/chat-features/reasoning-models,
https://docs.sglang.io/docs/advanced_features/separate_reasoning, https://docs.vllm.ai/en/stable/features/reasoning_outputs,
https://ai.google.dev/gemma/docs/core/prompt-formatting-gemma4 and, for `[THINK]`, Mistral's Magistral. Models also
misspell: `<|think|>`, `<think/>`, and brackets of full width.

Some put the whole answer into a code fence. One that begins with such a fence is given out at its end, without the
fence if nothing stands outside of it.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import NamedTuple

_TAGS = ("think", "thinking", "thought", "reason", "reasoning", "seed:think")
# Opening mark → closing mark, in lower case. They are found in any case.
_BLOCKS = {f"<{tag}>": f"</{tag}>" for tag in _TAGS} | {
    "[think]": "[/think]",  # Mistral
    "◁think▷": "◁/think▷",  # Kimi
    "<|begin_of_thought|>": "<|end_of_thought|>",
    "<|start_thinking|>": "<|end_thinking|>",  # Cohere
    "<|channel>": "<channel|>",  # Gemma 4, with the name of the channel, `thought`, inside
}
# What some of these models put around the answer that follows their thoughts.
_FRAMES = {
    "<|start_response|>": "<|end_response|>",
    "<|begin_of_solution|>": "<|end_of_solution|>",
    "<response>": "</response>",  # Granite
    "<answer>": "</answer>",  # Hunyuan
}
_CLOSINGS = frozenset(_BLOCKS.values())
# Other spellings → the tags above. They may be mixed: `<|think|>…</think>`.
_SPELLINGS = {
    spelling: f"<{slash}{tag}>"
    for tag in _TAGS
    for slash in ("", "/")
    for spelling in (f"<|{slash}{tag}|>", f"＜{slash}{tag}＞")
}
# No thoughts, before an answer; within thoughts their end, by somebody who misplaced the slash.
_EMPTY = {f"<{tag}/>": f"</{tag}>" for tag in _TAGS}
_HEADERS = ("<|start|>", "<|channel|>")  # begin what stands before a message
_MESSAGE, _CONSTRAIN = "<|message|>", "<|constrain|>"
_ENDS = ("<|end|>", "<|return|>", "<|call|>")  # of a message
_MARKS = (
    *_BLOCKS, *_CLOSINGS, *_SPELLINGS, *_EMPTY, *_FRAMES, *_FRAMES.values(), *_HEADERS, _MESSAGE, _CONSTRAIN, *_ENDS,
)  # fmt: skip
_LONGEST = max(map(len, _MARKS)) + 8  # with blanks
_FIRST = "".join({mark[0] for mark in _MARKS})
_SPACED = r"[ \t]{0,4}"  # some models write `<think >`


def _with_blanks(mark: str) -> str:
    """The pattern of a mark, with blanks before its last sign, and before the slash of an empty tag."""
    slash = _SPACED + "/" if mark in _EMPTY else ""
    return re.escape(mark[: -2 if slash else -1]) + slash + _SPACED + re.escape(mark[-1])


_ANY_MARK = re.compile(
    f"(?=[{re.escape(_FIRST)}])(?:{'|'.join(map(_with_blanks, _MARKS))})",
    re.IGNORECASE,
)
_BLANK = re.compile("[\\s\ufeff\u200b\u2060]*")  # may stand before the first mark
_CHANNEL = re.compile(r"<\|channel\|>\s*(\w+)", re.IGNORECASE)
_BARE_HEADER = re.compile(r"(?:<\|\w+\|>\s*\w*\s*)+", re.IGNORECASE)
_LONGEST_HEADER = 120  # characters: role, recipient, channel and type; a longer one is a quotation of the mark
_FENCE = re.compile(r"```(?:markdown|md|text|txt|json)?[ \t]{0,4}\n", re.IGNORECASE)  # not of code
_LONGEST_FENCE = 16  # characters
_QUOTES = tuple("\"'`“”‘’«»„")
_LINE = 80  # characters of the line before a mark that are remembered


class Piece(NamedTuple):
    """Text of an answer."""

    text: str
    restart: bool = False  # all text before it was thought: the answer begins here


class _Mode(Enum):
    BEGINNING = 1  # nothing of the answer has come
    ANSWER = 2
    THOUGHT = 3  # up to `_closing`
    HEADER = 4  # from `<|start|>` or `<|channel|>` to `<|message|>`
    ASIDE = 5  # a message on another channel than `final`


class AnswerText:
    """Takes a model's text in pieces and gives back what is not thought."""

    def __init__(self, *, hold: bool = False) -> None:
        """
        Args:
            hold: give nothing out before the closing mark of thoughts, or the end, unless a mark opens them.
        """
        self.opened_by_prompt = False  # whether thoughts came without their opening mark
        self._hold = hold
        self._mode = _Mode.BEGINNING
        self._rest = ""  # not read yet
        self._closing = ""  # of the thoughts, or of the frame around the answer
        self._opening, self._depth = "", 0  # of the thoughts, and how many are open
        self._maybe: str | None = None  # what followed the last closing mark within thoughts; None: there was none
        self._header = ""
        self._out: list[str] = []
        self._held = ""
        self._is_fenced = False  # whether the answer begins with a fence
        self._line = ""  # what stands before a mark
        self._given = self._restart = False
        self._watching = True  # whether a closing mark may still come for what looks like the answer
        self._in_channels = False  # whether the model marks channels
        self._is_final = False  # whether what was given out is from the channel `final`

    def feed(self, text: str) -> Piece:
        """Take the next piece of the model's text."""
        self._rest += text
        return self._read(final=False)

    def finish(self, *, drop_held: bool = False) -> Piece:
        """The rest. `drop_held`: what is held is thought that was cut off before its closing mark."""
        if drop_held and self._hold and self._watching:
            self._held = self._rest = ""
        self._hold = False
        return self._read(final=True)

    def _read(self, *, final: bool) -> Piece:
        steps = {
            _Mode.BEGINNING: self._begin,
            _Mode.ANSWER: self._answer,
            _Mode.THOUGHT: self._think,
            _Mode.HEADER: self._read_header,
            _Mode.ASIDE: self._skip_aside,
        }
        while self._rest and steps[self._mode](final):
            pass
        if not (self._hold and self._watching) and not (self._is_fenced and not final):
            self._out.append(_without_fence(self._held) if self._is_fenced else self._held)
            self._held = ""
        text, restart = "".join(self._out), self._restart
        self._out.clear()
        self._given, self._restart = self._given or bool(text), False
        return Piece(text, restart)

    # Each step takes something from the rest; it returns False where it can go on only with more text.

    def _begin(self, final: bool) -> bool:
        self._rest = _BLANK.sub("", self._rest, count=1)
        mark = _ANY_MARK.match(self._rest)
        if mark is None:
            if not final and (_may_become_mark(self._rest) or _may_become_fence(self._rest)):
                return False
            self._is_fenced = _FENCE.match(self._rest) is not None
            self._watching = self._watching and self._rest[:1] not in "{`"  # thoughts are neither JSON nor code
            self._mode = _Mode.ANSWER
            return bool(self._rest)
        name = _name(mark)
        if name in _BLOCKS:
            self._mode, self._closing, self._watching = _Mode.THOUGHT, _BLOCKS[name], False
            self._opening, self._depth, self._maybe = name, 1, None
        elif name in _HEADERS:
            self._mode, self._header = _Mode.HEADER, mark[0]
        elif name in _EMPTY:
            self._watching = False
        elif name in _FRAMES and self._watching and not name.startswith("<|"):  # no thoughts stand before it
            self._mode = _Mode.ANSWER
            return True
        elif name in _FRAMES:
            self._closing = _FRAMES[name]
        self._rest = self._rest[mark.end() :]
        return True

    def _answer(self, final: bool) -> bool:
        mark = _ANY_MARK.search(self._rest)
        if mark is None:
            ready = len(self._rest) - (0 if final else _length_of_partial(self._rest))
            self._give(ready)
            return False
        self._give(mark.start())
        name, after = _name(mark), self._rest[len(mark[0]) :]
        if not final and (not after or (after.isspace() and (name in _CLOSINGS or name in _ENDS))):
            return False
        if self._is_quoted(after):
            self._give(len(mark[0]))
        elif name in _HEADERS:
            self._mode, self._header, self._rest = _Mode.HEADER, mark[0], after
        elif name in _ENDS:
            return self._end_message(len(mark[0]), after, final)
        elif name in _CLOSINGS and self._watching and not self._goes_on(after):
            self.opened_by_prompt = True
            self._begin_anew(after)
        elif name == self._closing:
            self._closing, self._rest = "", after
        else:
            self._watching = self._watching and name not in _BLOCKS  # its closing mark will not be alone
            self._give(len(mark[0]))
        return True

    def _end_message(self, length: int, after: str, final: bool) -> bool:
        """The end of a message counts between messages and at the end of the text; elsewhere it is text."""
        begins = after.lstrip()
        if not final and not self._in_channels and _may_become_mark(begins):
            return False
        mark = _ANY_MARK.match(begins)
        if self._in_channels or not begins or (mark is not None and _name(mark) in (*_HEADERS, *_ENDS)):
            self._rest = after if self._in_channels else begins
        else:
            self._give(length)
        return True

    def _think(self, final: bool) -> bool:
        """Skip thoughts. Blocks may stand in each other; a mark in quotation marks is a word of the thoughts."""
        for mark in _ANY_MARK.finditer(self._rest):
            name, before, after = _name(mark), self._rest[: mark.start()], self._rest[mark.end() :]
            name = _EMPTY.get(name, name)
            if name not in (self._opening, self._closing):
                continue
            if not after and not final:
                self._skip(max(0, mark.start() - 1))  # the sign before the mark tells whether it is quoted
                return False
            if before[-1:] in _QUOTES and after[:1] in _QUOTES:
                self._skip(mark.end())
                return True
            self._depth += 1 if name == self._opening else -1
            self._skip(mark.end())
            if name == self._closing:
                self._maybe = ""
            if not self._depth:
                self._mode, self._closing = _Mode.BEGINNING, ""
            return True
        if final and self._maybe is not None:  # one more was opened than was closed: the last one closed them all
            self._mode, self._closing, self._rest = _Mode.BEGINNING, "", self._maybe + self._rest
            return True
        self._skip(max(0, len(self._rest) - _LONGEST))
        return False

    def _skip(self, length: int) -> None:
        """Leave characters of thoughts out; what follows a closing mark may turn out to be the answer."""
        if self._maybe is not None:
            self._maybe += self._rest[:length]
        self._rest = self._rest[length:]

    def _read_header(self, final: bool) -> bool:
        mark = _ANY_MARK.search(self._rest)
        head = self._rest if mark is None else self._rest[: mark.start()]
        if "\n" in head or len(self._header) + len(head) > _LONGEST_HEADER:
            return self._quote_header()
        if mark is None:
            if final and not _BARE_HEADER.fullmatch(self._header + head):
                return self._quote_header()
            return False
        name = _name(mark)
        self._header += self._rest[: mark.end()]
        self._rest = self._rest[mark.end() :]
        if name in _ENDS:
            self._mode = _Mode.BEGINNING
        elif name == _MESSAGE:
            self._open_message()
        return True

    def _quote_header(self) -> bool:
        """What looked like a header is text of the answer."""
        self._rest, length, self._header = self._header + self._rest, len(self._header), ""
        self._mode = _Mode.ANSWER
        self._give(length)
        return True

    def _open_message(self) -> None:
        channel = _CHANNEL.search(self._header)
        self._header, self._in_channels = "", True
        if channel is not None and channel[1].lower() != "final":
            self._mode = _Mode.ASIDE
            return
        if not self._is_final:
            self._begin_anew(self._rest)
        self._mode, self._is_final = _Mode.BEGINNING, True

    def _skip_aside(self, final: bool) -> bool:
        for mark in _ANY_MARK.finditer(self._rest):
            name = _name(mark)
            if name in _ENDS or name in _HEADERS:
                self._rest = self._rest[mark.end() :]
                self._mode, self._header = (_Mode.HEADER if name in _HEADERS else _Mode.BEGINNING), mark[0]
                return True
        self._rest = self._rest[-_LONGEST:]
        return False

    def _begin_anew(self, rest: str) -> None:
        """All text so far was thought."""
        if self._given or self._out or self._held:
            self.opened_by_prompt = True
        self._restart = self._restart or self._given
        self._given = False
        self._out.clear()
        self._held = self._line = ""
        self._watching = False
        self._mode, self._rest = _Mode.BEGINNING, rest

    def _give(self, length: int) -> None:
        """Give out the next characters of the rest."""
        text, self._rest = self._rest[:length], self._rest[length:]
        self._line = (self._line + text).rpartition("\n")[2][-_LINE:]
        if self._is_fenced or (self._hold and self._watching):
            self._held += text
        else:
            self._out.append(self._held + text)
            self._held = ""

    def _is_quoted(self, after: str) -> bool:
        """Whether a mark stands in quotation marks or backticks."""
        return self._line[-1:] in _QUOTES and after[:1] in _QUOTES

    def _goes_on(self, after: str) -> bool:
        """Whether a mark stands inside a sentence, as in "the tag </think> ends it"."""
        before = self._line.rstrip()[-1:]
        if not before or before in ".!?…:":
            return False
        return after[:1] in tuple(".,;:!?)") or (after[:1] == " " and after[1:2].islower())


def _name(mark: re.Match[str]) -> str:
    """A mark as the tables write it: in lower case, without blanks, in the first of its spellings."""
    name = mark[0].lower().replace(" ", "").replace("\t", "")
    return _SPELLINGS.get(name, name)


def _without_fence(text: str) -> str:
    """A text without the code fence around it, if there is one fence."""
    inside = _FENCE.sub("", text, count=1).rstrip()
    if not inside.endswith("```"):
        return text
    inside = inside.removesuffix("```")
    return text if re.search(r"^[ \t]*```", inside, re.MULTILINE) else inside.rstrip()


def _may_become_fence(text: str) -> bool:
    return len(text) < _LONGEST_FENCE and "\n" not in text and (text.startswith("```") or "```".startswith(text))


def _may_become_mark(text: str) -> bool:
    start = text[:_LONGEST].lower()
    bare, dense = start.rstrip(" \t"), start.replace(" ", "").replace("\t", "")
    if len(start) - len(dense) <= 8 and any(mark.startswith(dense) for mark in _EMPTY):
        return True
    return any(mark.startswith(start) or (len(start) - len(bare) <= 4 and mark[:-1] == bare) for mark in _MARKS)


def _length_of_partial(text: str) -> int:
    """How many of the last characters may be the beginning of a mark."""
    for at in range(max(0, len(text) - _LONGEST), len(text)):
        if text[at] in _FIRST and _may_become_mark(text[at:]):
            return len(text) - at
    return 0
