"""Calendars (iCalendar, RFC 5545): each event or task is a section with its times, place, people and description."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from rag_service.domain import ParsedDocument
from rag_service.errors import DocumentError
from rag_service.readers.common.blocks import BlockWriter
from rag_service.readers.common.builder import TextBuilder, clean, one_line
from rag_service.readers.common.names import choose_title

MEDIA_TYPE = "text/calendar"
_BEGINNING = "BEGIN:VCALENDAR"
_ENTRIES = frozenset({"VEVENT", "VTODO", "VJOURNAL"})
_PARAMETER = re.compile(r'(?:[^;"]|"[^"]*")+')
_MOMENT = re.compile(r"(\d{4})(\d\d)(\d\d)(?:T(\d\d)(\d\d)(\d\d)(Z?))?")
_DURATION = re.compile(r"([+-]?)P(?:(\d{1,5})W)?(?:(\d{1,5})D)?(?:T(?:(\d{1,5})H)?(?:(\d{1,5})M)?(?:(\d{1,5})S)?)?")
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_UNITS = ("weeks", "days", "h", "min", "s")
# What is written of an entry, in this order.
_TIMES = {"DTSTART": "Start", "DTEND": "End", "DUE": "Due", "COMPLETED": "Completed"}
_EXCEPTIONS = {"RDATE": "Also on", "EXDATE": "Not on", "RECURRENCE-ID": "Instead of"}  # of entries that repeat
_PEOPLE = {"ORGANIZER": "Organizer", "ATTENDEE": "Attendee"}
_TEXTS = {"LOCATION": "Location", "STATUS": "Status", "CATEGORIES": "Categories", "URL": "Link"}
_PARAGRAPHS = ("DESCRIPTION", "COMMENT")
_SHOWN_STATES = frozenset({"CANCELLED", "TENTATIVE", "NEEDS-ACTION", "COMPLETED", "IN-PROCESS"})  # states worth a line


class _Property(NamedTuple):
    parameters: Mapping[str, str]
    value: str


@dataclass
class _Entry:
    properties: dict[str, list[_Property]] = field(default_factory=dict)

    def text(self, name: str) -> str:
        found = self.properties.get(name)
        return _unescaped(found[0].value).strip() if found else ""


def is_calendar(text: str) -> bool:
    """Whether a text is a calendar."""
    return text.lstrip("\ufeff \t\r\n")[: len(_BEGINNING)].upper() == _BEGINNING


def parse_calendar(text: str, *, name: str) -> ParsedDocument:
    """Read the entries of a calendar. `headings` are its name and the entry's; `paragraph` counts lines.

    Reminders are left out. Raises DocumentError without an entry.
    """
    calendar, entries = _read(clean(text))
    if not entries:
        raise DocumentError(f'"{name}" is a calendar without events or tasks. Check that you chose the right file.')
    writer = BlockWriter(TextBuilder(name))
    title = calendar.text("X-WR-CALNAME")
    writer.write_heading(title, 1)
    writer.write_paragraph(calendar.text("X-WR-CALDESC"))
    files = sum(len(entry.properties.get("ATTACH", ())) for entry in entries)
    for entry in entries:
        writer.end_section(2 if title else 1)
        writer.write_heading(entry.text("SUMMARY"), 2 if title else 1)
        for line in _lines(entry):
            writer.write_paragraph(line, ending="\n")
        for key in _PARAGRAPHS:
            writer.write_paragraph(entry.text(key))
    if files:
        writer.builder.warn(f"{'1 attachment was' if files == 1 else f'{files} attachments were'} not read.")
    only = writer.title if len(entries) == 1 else None  # the title of one entry is not that of the others
    return writer.builder.build(title=choose_title(name, title, only), media_type=MEDIA_TYPE)


def _read(text: str) -> tuple[_Entry, Sequence[_Entry]]:
    """The properties of the calendar itself, and its entries."""
    calendar, entries = _Entry(), list[_Entry]()
    inside: list[str] = []
    for line in re.sub(r"\n[ \t]", "", text).split("\n"):
        key, found = _split(line)
        if key == "BEGIN":
            inside.append(found.value.strip().upper())
            if inside[-1] in _ENTRIES:
                entries.append(_Entry())
        elif key == "END":
            del inside[-1:]
        elif inside and inside[-1] in _ENTRIES:
            entries[-1].properties.setdefault(key, []).append(found)
        elif inside == ["VCALENDAR"]:
            calendar.properties.setdefault(key, []).append(found)
    return calendar, entries


def _split(line: str) -> tuple[str, _Property]:
    """A line `NAME;PARAMETER=VALUE:VALUE` as name and property."""
    is_quoted = False
    for at, character in enumerate(line):
        if character == '"':
            is_quoted = not is_quoted
        elif character == ":" and not is_quoted:
            head, *parameters = _PARAMETER.findall(line[:at]) or [""]
            pairs = (parameter.partition("=") for parameter in parameters)
            found = {key.strip().upper(): value.strip('"') for key, _, value in pairs}
            return head.strip().upper(), _Property(found, line[at + 1 :])
    return "", _Property({}, "")


def _lines(entry: _Entry) -> Iterator[str]:
    yield from _times(entry)
    for rule in entry.properties.get("RRULE", ()):
        yield f"Repeats: {_repetition(rule.value)}"
    for key, label in _EXCEPTIONS.items():
        moments = (
            found._replace(value=one) for found in entry.properties.get(key, ()) for one in found.value.split(",")
        )
        if shown := ", ".join(map(_moment, moments)):
            yield f"{label}: {shown}"
    for key, label in _TEXTS.items():
        text = one_line(entry.text(key))
        if key == "STATUS":
            text = text.lower().replace("-", " ") if text.upper() in _SHOWN_STATES else ""
        if text and key != "STATUS":
            yield f"{label}: {text}"
        if key == "LOCATION":
            for role, name in _PEOPLE.items():
                for person in entry.properties.get(role, ()):
                    yield f"{name}: {_person(person)}"
        if text and key == "STATUS":
            yield f"{label}: {text}"


def _times(entry: _Entry) -> Iterator[str]:
    """Beginning, end and the like; whole days as calendars show them, whose stored end is the day after."""
    starts, ends = (entry.properties.get(key, []) for key in ("DTSTART", "DTEND"))
    first, last = (_day(found[0].value) if found else None for found in (starts, ends))
    if first is not None and (last is None or last - first <= datetime.timedelta(days=1)):
        yield f"Date: {first}"
    elif first is not None and last is not None:
        yield f"Start: {first}"
        yield f"End: {last - datetime.timedelta(days=1)}"
    for key, label in _TIMES.items():
        for found in entry.properties.get(key, ())[:1]:
            if first is None or key not in ("DTSTART", "DTEND"):
                yield f"{label}: {_moment(found)}"
    if length := _length(entry.text("DURATION")):
        yield f"Duration: {length}"


def _day(value: str) -> datetime.date | None:
    found = _MOMENT.fullmatch(value.strip())
    if found is None or found[4] is not None:
        return None
    try:
        return datetime.date(int(found[1]), int(found[2]), int(found[3]))
    except ValueError:
        return None


def _moment(time: _Property) -> str:
    """A time as "2026-03-02 10:00 (Europe/Madrid)"; as it is written if it is none."""
    value = time.value.strip()
    found = _MOMENT.fullmatch(value)
    if found is None or _day(value[:8]) is None:
        return one_line(value)
    shown = f"{found[1]}-{found[2]}-{found[3]}"
    if found[4] is None:
        return shown
    shown += f" {found[4]}:{found[5]}" + (f":{found[6]}" if found[6] != "00" else "")
    zone = one_line(time.parameters.get("TZID", ""))
    return f"{shown} UTC" if found[7] else f"{shown} ({zone})" if zone else shown


def _length(value: str) -> str:
    found = _DURATION.fullmatch(value)
    if found is None:
        return one_line(value)
    parts = [f"{int(number)} {unit}" for number, unit in zip(found.groups()[1:], _UNITS, strict=True) if number]
    return f"{'-' if found[1] == '-' else ''}{' '.join(parts)}"


def _repetition(rule: str) -> str:
    """A rule as "weekly, every 2, 4 times, until 2026-05-01"."""
    parts = dict(part.partition("=")[::2] for part in rule.strip().split(";"))
    said = [parts.pop("FREQ", "").lower()]
    if interval := parts.pop("INTERVAL", ""):
        said.append(f"every {interval}")
    if count := parts.pop("COUNT", ""):
        said.append(f"{count} times")
    if until := parts.pop("UNTIL", ""):
        said.append(f"until {_moment(_Property({}, until))}")
    parts.pop("WKST", None)
    said += [f"{key.removeprefix('BY').lower()} {value.replace(',', ', ')}" for key, value in parts.items() if value]
    return one_line(", ".join(filter(None, said)))


def _person(person: _Property) -> str:
    address = re.sub(r"(?i)^mailto:", "", person.value.strip())
    name, state = person.parameters.get("CN", ""), person.parameters.get("PARTSTAT", "").upper()
    shown = f"{name} <{address}>" if name and name != address else address
    return one_line(shown + (f" ({state.lower()})" if state in ("ACCEPTED", "DECLINED", "TENTATIVE") else ""))


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda found: "\n" if found[1] in "nN" else found[1], text)
