"""Puts a calibration into an index.yaml as a person would: its comments and order stay as they are."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from rag_service.definitions import Calibration, Language, RelevanceFit, load_index
from rag_service.errors import DefinitionError

_INDENT = re.compile(r"^(\s*)")
_KEY = "calibration"


def write_calibration(file: Path, fit: RelevanceFit, *, model: str, language: Language | None = None) -> Calibration:
    """Replace or add the `calibration:` block below `query:` and return what it says now.

    Args:
        file: an index.yaml.
        fit: the numbers.
        model: the embedding model that they were found with. Numbers of another model are dropped.
        language: of the questions that they are for; None: of all that have no numbers of their own.

    Raises:
        DefinitionError: the file cannot be written, or would not load afterwards; it is left as it was.
    """
    before = file.read_text(encoding="utf-8")
    wanted = _merge(_read(file), fit, model, language)
    try:
        file.write_text(put_calibration(before, wanted), encoding="utf-8")
        written = _read(file)
    except DefinitionError:
        file.write_text(before, encoding="utf-8")
        raise
    except OSError as error:
        raise DefinitionError(f"{file}: cannot be written: {error.strerror}.") from error
    if written != wanted:
        file.write_text(before, encoding="utf-8")
        raise DefinitionError(f"{file}: query: is not written as a block of keys; add the calibration by hand.")
    return wanted


def _read(file: Path) -> Calibration | None:
    return load_index(file.parent.name, indices_path=file.parent.parent).query.calibration


def _merge(old: Calibration | None, fit: RelevanceFit, model: str, language: Language | None) -> Calibration:
    if old is None or old.model not in (None, model):
        old = Calibration(**fit.model_dump(), model=model)
    if language is None:
        return Calibration(**fit.model_dump(), model=model, languages=old.languages)
    return old.model_copy(update={"model": model, "languages": {**old.languages, language: fit}})


def put_calibration(text: str, calibration: Calibration) -> str:
    """The text of an index.yaml with this calibration.

    Raises:
        DefinitionError: `query:` is written in one line.
    """
    lines = text.splitlines()
    start = next((number for number, line in enumerate(lines) if re.match(r"query:\s*(#.*)?$", line)), None)
    if start is None and any(line.startswith("query:") for line in lines):
        raise DefinitionError("query: is not written as a block of keys; add the calibration by hand.", field="query")
    if start is None:
        return "\n".join([*lines, "", "query:", *_block("  ", calibration)]) + "\n"
    end = _end_of_block(lines, start, 0)
    indent = next((_indent(line) for line in lines[start + 1 : end] if _is_content(line)), 2)
    block = _block(" " * indent, calibration)
    pattern = re.compile(rf"\s{{{indent}}}{_KEY}:")
    place = next((number for number in range(start + 1, end) if pattern.match(lines[number])), None)
    if place is None:
        return "\n".join([*lines[:end], *block, *lines[end:]]) + "\n"
    after = _end_of_block(lines, place, indent)
    return "\n".join([*lines[:place], *block, *lines[after:]]) + "\n"


def _block(indent: str, calibration: Calibration) -> list[str]:
    lines = [f"{_KEY}:"]
    if calibration.model is not None:
        lines.append(f"  model: {calibration.model}")
    lines += [f"  {key}: {value}" for key, value in _numbers(calibration)]
    if calibration.languages:
        lines.append("  languages:")
    for language, fit in sorted(calibration.languages.items()):
        lines.append(f"    {language}:")
        lines += [f"      {key}: {value}" for key, value in _numbers(fit)]
    return [indent + line for line in lines]


def _numbers(fit: RelevanceFit) -> list[tuple[str, str]]:
    numbers = {"intercept": fit.intercept, "cosine": fit.cosine, "coverage": fit.coverage}
    return [*((key, f"{value:g}") for key, value in numbers.items()), ("run", fit.run)]


def _end_of_block(lines: Sequence[str], start: int, indent: int) -> int:
    """Number of the line after the last one that belongs to the key at `start`."""
    end = start + 1
    for number in range(start + 1, len(lines)):
        line = lines[number]
        if _is_content(line) and _indent(line) <= indent:
            break
        if _is_content(line) or (line.strip() and _indent(line) > indent):
            end = number + 1
    return end


def _is_content(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith("#")


def _indent(line: str) -> int:
    match = _INDENT.match(line)
    return len(match.group(1)) if match else 0
