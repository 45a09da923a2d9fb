"""Subtitles and transcripts (WebVTT, SubRip): what was said, with its time."""

from __future__ import annotations

import re
from html import unescape

from rag_service.domain import Location, ParsedDocument
from rag_service.readers.common.builder import TextBuilder, clean, one_line
from rag_service.readers.common.names import choose_title

_TIMES = re.compile(r"\s*(?:(\d{1,3}):)?(\d{1,2}):(\d{2})[.,](\d{1,3})\s*-->\s*(?:(\d{1,3}):)?(\d{1,2}):(\d{2})[.,]")
_BEGINS = re.compile(
    r"\ufeff?(?:WEBVTT(?:[ \t].*)?$|\s*\d+[ \t]*\n[ \t]*\d{1,3}:\d{2}:\d{2}[,.]\d{1,3}[ \t]*-->)", re.M
)
_VOICE = re.compile(r"<v(?:\.[^ >]*)?[ \t]+([^>]{1,100})>")
_TAG = re.compile(r"</?[a-zA-Z][^<>]{0,200}>|<\d{2}:[\d:.]{1,20}>|\{\\[^{}]{0,100}\}")
_SKIPPED = ("NOTE", "STYLE", "REGION")
_PAUSE = 3  # seconds between two cues: a new paragraph
_MAX_PARAGRAPH = 600  # characters, then the next sentence end closes it
_SENTENCE_ENDS = (".", "?", "!", "…")


def is_subtitles(text: str) -> bool:
    """Whether a text begins as WebVTT or SubRip."""
    return _BEGINS.match(text[:1000].replace("\r\n", "\n")) is not None


def parse_subtitles(text: str, *, name: str) -> ParsedDocument:
    """Read subtitles as running text; `Location.time` is the start of a cue. Speakers precede their words."""
    text = clean(text)
    builder = TextBuilder(name)
    speaker = previous = ""
    ends_sentence = False
    paragraph = end = 0
    for block in re.split(r"\n[ \t]*\n+", text):
        lines = block.strip("\n").split("\n")
        timed = ((at, times) for at, line in enumerate(lines[:3]) if (times := _TIMES.match(line)))
        at, times = next(timed, (0, None))
        if times is None or lines[0].startswith(_SKIPPED):
            continue
        start, stop = _seconds(times[1], times[2], times[3]), _seconds(times[5], times[6], times[7])
        voice = _VOICE.search(block)
        # Live captions repeat the line before: it is not said twice.
        new = [line for raw in lines[at + 1 :] if (line := _words(raw)) and line != previous]
        if not new:
            continue
        previous = new[-1]
        said, who = " ".join(new), one_line(unescape(voice[1])) if voice else ""
        is_over = paragraph > _MAX_PARAGRAPH and ends_sentence
        if len(builder) and (who != speaker or start - end > _PAUSE or is_over):
            builder.write("\n\n")
            paragraph = 0
        place = Location(time=f"{start // 3600:02}:{start // 60 % 60:02}:{start % 60:02}")
        begins = paragraph == 0
        builder.write("" if begins else " ")
        builder.write(f"{who}: {said}" if who and begins else said, place)
        ends_sentence = said.endswith(_SENTENCE_ENDS)
        paragraph += len(said)
        speaker, end = who, stop
    return builder.build(
        title=choose_title(name), media_type="text/vtt" if "WEBVTT" in text[:10] else "application/x-subrip"
    )


def _seconds(hours: str | None, minutes: str, seconds: str) -> int:
    return int(hours or 0) * 3600 + int(minutes) * 60 + int(seconds)


def _words(line: str) -> str:
    return one_line(unescape(_TAG.sub("", line)))
