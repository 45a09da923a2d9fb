"""Text to index terms (words, folded and stemmed, the same way for chunks and for questions), and token counts.

The lexical index, the coverage figure, the heuristic reranker and the extractive answerer all count the terms
made here. Accents are folded before stemming and restored on the endings that the Snowball stemmers know only
with an accent, so that "documentacion" in a question and "documentación" in a text give the same term.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections import Counter
from collections.abc import Callable
from functools import cache, lru_cache

import Stemmer

from rag_service.language.languages import Rules, language_codes, load_language
from rag_service.language.normalise import keep_numbers_apart, without_marks
from rag_service.recent import kept_apart

_WORD = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_]+\d*|\d+[^\W\d_]+", re.UNICODE)
# Chinese characters, kana, and the scripts of Thai, Lao, Burmese and Khmer
_UNSPACED_LETTERS = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_UNSPACED = re.compile(f"[{_UNSPACED_LETTERS}]+")
_COUNTED = re.compile(rf"[{_UNSPACED_LETTERS}]{{1,2}}|(?:(?![{_UNSPACED_LETTERS}])\w)+")
_MAX_TERM_LENGTH = 64  # longer runs are encodings or garbage; the head is enough to match on
_DECOMPOSED = 1000  # characters at once: a run of combining marks is sorted in quadratic time

# Thousands separated by a space, as in French: "1 200 €". A no-break space between digits is always one; a plain
# space may also stand between two numbers, and counts only where a unit or the end follows.
_THOUSANDS = re.compile(r"\d[ \u00a0\u202f\u2009]\d{3}")  # a quick look: few texts hold any
_NO_BREAK_THOUSANDS = re.compile(r"(?<=\d)[\u00a0\u202f\u2009](?=\d{3}(?!\d))")
_SPACED_THOUSANDS = re.compile(
    r"(?<!\d )(?<![\d.,])\d{1,3}(?: \d{3})+(?!\d)(?=(?:,\d+)?\s?(?:[€$£%?!.;)]|euros?\b|k[gm]\b|m²|\Z))"
)
_PLURALS = ((re.compile(r"(?:oes|aes)$"), "ao"), (re.compile(r"ies$"), "y"), (re.compile(r"[sx]$"), ""))
_ENDING = re.compile(r"[aeo]$")  # gender and the rest of a plural: roja, rojo; boxe(s), box
_MIN_LETTERS = 4  # shorter words are compared as they are


def fold(text: str) -> str:
    """Case-folded text without accents: "Año" and "ANO" both give "ano"; "10⁶" gives "10^6"."""
    if text.isascii():
        return text.lower()
    folded = keep_numbers_apart(text.casefold())
    if len(folded) <= _DECOMPOSED:
        return unicodedata.normalize("NFKD", folded).translate(_without_marks)
    pieces = (folded[start : start + _DECOMPOSED] for start in range(0, len(folded), _DECOMPOSED))
    return "".join(unicodedata.normalize("NFKD", piece) for piece in pieces).translate(_without_marks)


class _WithoutMarks(dict[int, int | str | None]):
    """For `str.translate`: drops combining characters. Each character is looked up once in a process."""

    def __missing__(self, code: int) -> int | str | None:
        self[code] = kept = None if unicodedata.combining(chr(code)) else code
        return kept


# Unicode does not decompose ligatures such as œ, but people without a key for them type two letters.
_without_marks = _WithoutMarks({ord("œ"): "oe", ord("æ"): "ae"})


def words(text: str) -> list[str]:
    """Words of a text in order, folded. Numbers keep their separators: "1.234,56" is one word.

    Spaces that separate thousands are dropped: "1 200 €" gives "1200". So are footnote marks.
    """
    text = without_marks(text)
    if _THOUSANDS.search(text):
        text = _NO_BREAK_THOUSANDS.sub("", text)
        text = _SPACED_THOUSANDS.sub(lambda number: number.group().replace(" ", ""), text)
    return [word[:_MAX_TERM_LENGTH] for word in _WORD.findall(fold(text))]


def count_words(text: str) -> int:
    """Return how many words a text has; two letters of a script without spaces between its words count as one."""
    unspaced = "".join(_UNSPACED.findall(text))
    return len(unspaced) // 2 + len(words(_UNSPACED.sub(" ", text) if unspaced else text))


def find_words(text: str) -> list[tuple[int, int]]:
    """Return where the words of a text are, in order; two letters of a script without spaces count as one."""
    return [match.span() for match in _COUNTED.finditer(text)]


def terms(text: str, language: str) -> list[str]:
    """Index terms of a text in order, stop words left out.

    Words of unsupported languages are folded but not stemmed.
    """
    return [term for word in words(text) if (term := index_term(word, language)) is not None]


def word_forms(text: str) -> set[str]:
    """Its words as written and their stems in every language: a document may not be in the question's language."""
    return set().union(*map(_forms, words(text)))


@lru_cache(maxsize=50_000)
def _forms(word: str) -> frozenset[str]:
    return frozenset({word, *filter(None, (index_term(word, language) for language in language_codes()))})


def frequencies(text: str, language: str) -> Counter[str]:
    """How often each index term occurs in the text."""
    return Counter(terms(text, language))


def is_stop_word(word: str, language: str) -> bool:
    """Whether a folded word carries no meaning of its own in the language."""
    return language in language_codes() and word in load_language(language).stop_words


@lru_cache(maxsize=200_000)
def index_term(word: str, language: str) -> str | None:
    """Index term of a word as `words` gives it; None for a stop word."""
    if is_stop_word(word, language):
        return None
    if word[0].isdigit() or language not in language_codes():
        return word
    return _stemming(language).stem(word)


class _Stemming:
    """Snowball's stemmer of a language with the corrections of its data file."""

    def __init__(self, language: str) -> None:
        data = load_language(language)
        entries = (entry.split() for entry in data.stems.irregular_forms.split(","))
        self._bases = {form: forms[0] for forms in entries for form in forms[1:]}
        self._irregular_stems = data.stems.irregular_stems
        self._endings = _Replacements(data.stems.accented_endings)
        self._corrections = _Replacements(data.stems.stem_corrections)
        self._short_plural = re.compile(data.stems.short_plural or r"(?!)")
        self._algorithm = data.stemmer
        self._local = threading.local()  # stemmers are not safe to share between threads

    def stem(self, word: str) -> str:
        if (known := self._irregular_stems.get(word)) is not None:
            return known
        word = self._endings.apply_first(self._bases.get(word, word))
        stem = self._corrections.apply_all(fold(self._snowball().stemWord(word)))
        return stem[:-1] if stem == fold(word) and self._short_plural.search(stem) else stem

    def _snowball(self) -> Stemmer.Stemmer:
        if not hasattr(self._local, "stemmer"):
            self._local.stemmer = Stemmer.Stemmer(self._algorithm)
        stemmer: Stemmer.Stemmer = self._local.stemmer
        return stemmer


class _Replacements:
    """Replacements by regular expressions. One search tells that none applies, as to most words."""

    def __init__(self, rules: Rules) -> None:
        self._rules = [(re.compile(pattern), replacement) for pattern, replacement in rules]
        self._any = re.compile("|".join(f"(?:{pattern})" for pattern, _ in rules) or r"(?!)")

    def apply_first(self, word: str) -> str:
        if self._any.search(word):
            for pattern, replacement in self._rules:
                changed, count = pattern.subn(replacement, word)
                if count:
                    return changed
        return word

    def apply_all(self, word: str) -> str:
        if self._any.search(word):
            for pattern, replacement in self._rules:
                word = pattern.sub(replacement, word)
        return word


@cache
def _stemming(language: str) -> _Stemming:
    return _Stemming(language)


_PASSAGE = 20_000  # characters; whole documents are counted once and must not stay in memory
_PARAGRAPH_START = re.compile(r"(?<=\n\n)(?=\S)")  # no token reaches over it


@lru_cache(maxsize=1)
def _encode() -> Callable[[str], list[int]]:
    from llama_index.core.utils import get_tokenizer

    tokenizer: Callable[[str], list[int]] = get_tokenizer()
    return tokenizer


def count_tokens(text: str) -> int:
    """Tokens of a text by LlamaIndex's default tokenizer; an estimate for other models.

    A prompt is counted as a whole, with the numbers and the boundary of its request in it, but most of its
    paragraphs were counted before: for the budget, or for another question that the same passage answers.
    """
    if len(text) > _PASSAGE:
        return len(_encode()(text))
    return sum(map(_count_paragraph, _PARAGRAPH_START.split(text)))


@kept_apart(4096)
def _count_paragraph(paragraph: str) -> int:
    return len(_encode()(paragraph))


@lru_cache(maxsize=50_000)
def fold_word(word: str) -> str:
    """Return a word of `words` without plural and gender."""
    if len(word) < _MIN_LETTERS or not word.isalpha():
        return word
    for pattern, singular in _PLURALS:
        word, changed = pattern.subn(singular, word)
        if changed:
            break
    return _ENDING.sub("", word) if len(word) >= _MIN_LETTERS else word


@kept_apart(100_000)
def fold_words(text: str) -> str:
    """Return the words of a text as cells are compared: folded, without plurals, one space between them."""
    return " ".join(map(fold_word, words(text)))
