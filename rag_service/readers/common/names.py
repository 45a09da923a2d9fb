"""Safe file names, titles and declared languages."""

from __future__ import annotations

import re
import unicodedata

# Extensions of the formats that are read, and what people call those.
SUFFIXES = (
    ".pdf", ".docx", ".xlsx", ".pptx", ".odt", ".ods", ".odp", ".rtf", ".eml", ".mht", ".mhtml", ".msg", ".mbox",
    ".html", ".htm", ".xhtml", ".epub", ".xml", ".rss", ".atom", ".nxml", ".json", ".jsonl", ".ndjson", ".geojson",
    ".ipynb", ".yaml", ".yml", ".ics", ".vtt", ".srt", ".csv", ".tsv", ".md", ".markdown", ".txt", ".zip", ".docm",
    ".xlsm", ".pptm", ".dotx", ".xltx", ".potx", ".ppsx",
)  # fmt: skip
OLD_OFFICE_SUFFIXES = (".doc", ".xls", ".ppt")
IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".webp")
# Extensions of formats that are refused, or read with an extra or with LibreOffice, with words that say what to do.
REFUSED_SUFFIXES = (
    *OLD_OFFICE_SUFFIXES, ".xlsb", ".pages", ".numbers", ".key",
    *IMAGE_SUFFIXES,
)  # fmt: skip
FORMATS = (
    "PDF, Word, Excel, PowerPoint and OpenDocument files, RTF, e-mails and mailboxes, web pages, EPUB, XML, JSON, "
    "notebooks, YAML, calendars, subtitles, CSV, Markdown, plain text, and ZIP archives of these"
)
MAX_NAME = 255  # the longest name that common file systems take
_FALLBACK = "document"
# Control, format (bidirectional overrides, zero-width) and surrogate characters can disguise a name.
_HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_LITTER = frozenset({"thumbs.db", "desktop.ini", "ehthumbs.db", "icon\r"})
# Default titles of programs.
_EMPTY_TITLE = re.compile(
    r"(?i)(untitled|sin t[ií]tulo|sans titre|document|documento|book|libro|classeur|slide|title)[\s_-]*\d*|"
    r"\(?(anonymous|unspecified)\)?|"
    r"(microsoft )?(word|excel|powerpoint)\b.*|"
    r".*\.(pdf|docx?|xlsx?|pptx?|csv|txt|md|rtf|od[tsp]|eml|msg|epub|indd|qxd|tmp|html?)"
)


def clean_file_name(name: str) -> str:
    """The safe base name of an uploaded file, for display only; never a path.

    Folders (`/` and `\\`), control and invisible characters are dropped. The result is NFC, has at most 255 characters
    (shortened before the extension) and is "document" if nothing is left.
    """
    base = re.split(r"[/\\]", name)[-1]
    visible = "".join(char for char in base if unicodedata.category(char) not in _HIDDEN_CATEGORIES)
    text = " ".join(unicodedata.normalize("NFC", visible).split()).strip(". ")
    if not text:
        return _FALLBACK
    if len(text) <= MAX_NAME:
        return text
    ending = _split(text)[1][:20]
    return text[: MAX_NAME - len(ending)].rstrip(". ") + ending


def suffix_of(name: str) -> str:
    """The extension of a file name in lower case with its dot, or an empty string."""
    return _split(clean_file_name(name))[1].lower()


def is_litter(path: str) -> bool:
    """Whether a file is one that programs leave behind: hidden, a lock file, a thumbnail cache, a resource fork.

    `path`: relative, with `/`; a hidden folder hides what is in it.
    """
    parts = [part for part in path.split("/") if part]
    if not parts or any(part.startswith(".") or part == "__MACOSX" for part in parts):
        return True
    name = parts[-1].lower()
    return name in _LITTER or name.startswith("~$") or name.endswith(("~", ".tmp", ".crdownload", ".part"))


def choose_title(name: str, *candidates: object) -> str:
    """The first candidate that looks like a human-made title, else the file name without its extension.

    Skips candidates that are not text, have no letters, name a file or program ("Microsoft Word - x.doc"), or are
    placeholders ("Untitled 1").
    """
    for candidate in candidates:
        if not isinstance(candidate, str):
            continue
        title = " ".join("".join(c if c.isprintable() else " " for c in candidate).split())[:300]
        if sum(char.isalpha() for char in title) >= 3 and not _EMPTY_TITLE.fullmatch(title):
            return title
    return _split(clean_file_name(name))[0]


def _split(name: str) -> tuple[str, str]:
    """Stem and extension with its dot. pathlib would add 5 ms to the start of the sandbox."""
    stem, dot, ending = name.rpartition(".")
    return (stem, dot + ending) if stem else (name, "")


def language_of(declared: object) -> str | None:
    """The ISO 639-1 code of a declared language ("es-ES" gives "es"), or None."""
    if not isinstance(declared, str):
        return None
    match = re.fullmatch(r"([A-Za-z]{2})(?:[-_][A-Za-z0-9_-]{1,20})?", declared.strip())
    return match.group(1).lower() if match else None
