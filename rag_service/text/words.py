"""Text to index terms: words, folded and stemmed, the same way for chunks and for questions.

The lexical index, the coverage figure, the heuristic reranker and the extractive answerer all
count the terms made here, so that a term means one thing everywhere.

Accents are folded before stemming and restored on the endings that the Snowball stemmers know
only with an accent: a question typed as "documentacion" and a text that says "documentación"
give one term, which stemming first and folding later does not.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

import Stemmer

from rag_service.text.irregular_forms import BASES
from rag_service.text.stopwords import STOP_WORDS, TELLING_WORDS

LANGUAGES = ("es", "fr", "en")

_ALGORITHMS = {"es": "spanish", "fr": "french", "en": "english"}
_WORD = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_]+\d*|\d+[^\W\d_]+", re.UNICODE)
_SHORT_PLURAL = re.compile(r"^\w{1,4}[aeo]s$")
_MAX_TERM_LENGTH = 64  # longer runs are encodings or garbage; the head is enough to match on
_DECOMPOSED = 1000  # characters at once: a run of combining marks is sorted in quadratic time
_SAMPLE = 20_000  # characters of a text that tell its language
_stemmers = threading.local()  # Stemmer objects are not safe to share between threads

_Rules = tuple[tuple[re.Pattern[str], str], ...]  # (what is replaced, by what)


def _any_of(rules: _Rules) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern.pattern})" for pattern, _ in rules))


_RESTORED_ENDINGS: dict[str, _Rules] = {
    "es": (
        (re.compile(r"([cs])ion$"), r"\1ión"),
        (re.compile(r"logia(s?)$"), r"logía\1"),
        (re.compile(r"(r|s|t)ia(n|s|mos|is)?$"), r"\1ía\2"),
    ),
    "fr": (
        (re.compile(r"ees?$"), "ée"),
        (re.compile(r"ites?$"), "ité"),
        (re.compile(r"iere(s?)$"), r"ière\1"),
    ),
    "en": (),
}
# What Snowball leaves apart: forms of one word, mended on the folded stem, each rule in turn.
_MENDED_STEMS: dict[str, _Rules] = {
    "es": (
        (re.compile(r"(?<=[a-z])ie(?=[bcdfgjlmnpqrstvxyz]+$)"), "e"),  # cierra: cerrar
        (re.compile(r"(?<![qg])ue(?=[bcdfgjlmnpqrstvxyz]+$)"), "o"),  # renueva: renovar
        (re.compile(r"(?:z?c|z|qu)$"), "c"),  # saque, empiece, conozca, luz: sacar, empezar, conocer, luces
        (re.compile(r"gu$"), "g"),  # pague: pagar
    ),
    "fr": (
        (re.compile(r"(?<=..[tv])(?:ien[st]?|iennent|enu)$"), "en"),  # obtient, prévenu: obtenir, prévenir
        (re.compile(r"(?<=...)aison$"), ""),  # livraison: livrer
        (re.compile(r"(?<=...)aill$"), "ail"),  # travailler: travail
        (re.compile(r"(?<=.)y$"), "i"),  # payé, employé: payer, employer
        (re.compile(r"(?<=..)os$"), "o"),  # vélos
        (re.compile(r"(?<=.)eux$"), "eu"),  # lieux
    ),
}
# A word that no rule of its language concerns needs one look, not one for each.
_ENDING = {language: _any_of(rules) for language, rules in _RESTORED_ENDINGS.items() if rules}
_TO_MEND = {language: _any_of(rules) for language, rules in _MENDED_STEMS.items()}
_IRREGULAR = {"fr": {"pays": "pays", "travaux": "travail", "teletravaux": "teletravail", "baux": "bail"}}

# Thousands set apart by a space, as French does: "1 200 €". A no-break space between digits says so by itself; a
# plain one may as well stand between two numbers, and counts where a unit or the end follows.
_THOUSANDS = re.compile(r"\d[ \u00a0\u202f\u2009]\d{3}")  # a quick look: few texts hold any
_NO_BREAK_THOUSANDS = re.compile(r"(?<=\d)[\u00a0\u202f\u2009](?=\d{3}(?!\d))")
_SPACED_THOUSANDS = re.compile(
    r"(?<!\d )(?<![\d.,])\d{1,3}(?: \d{3})+(?!\d)(?=(?:,\d+)?\s?(?:[€$£%?!.;)]|euros?\b|k[gm]\b|m²|\Z))"
)


def fold(text: str) -> str:
    """Case-folded text without accents: "Año" and "ANO" both give "ano"."""
    if text.isascii():
        return text.lower()
    folded = text.casefold()
    if len(folded) <= _DECOMPOSED:
        return unicodedata.normalize("NFKD", folded).translate(_without_marks)
    pieces = (folded[start : start + _DECOMPOSED] for start in range(0, len(folded), _DECOMPOSED))
    return "".join(unicodedata.normalize("NFKD", piece) for piece in pieces).translate(_without_marks)


class _WithoutMarks(dict[int, int | str | None]):
    """For `str.translate`: drops combining characters. Each character is looked up once in a process."""

    def __missing__(self, code: int) -> int | str | None:
        self[code] = kept = None if unicodedata.combining(chr(code)) else code
        return kept


# Unicode takes ligatures such as œ for letters of their own, but who has no key for them types two.
_without_marks = _WithoutMarks({ord("œ"): "oe", ord("æ"): "ae"})


def words(text: str) -> list[str]:
    """Words of a text in order, folded. Numbers keep their separators: "1.234,56" is one word.

    Spaces between thousands are none of them: "1 200 €" gives "1200".
    """
    if _THOUSANDS.search(text):
        text = _NO_BREAK_THOUSANDS.sub("", text)
        text = _SPACED_THOUSANDS.sub(lambda number: number.group().replace(" ", ""), text)
    return [word[:_MAX_TERM_LENGTH] for word in _WORD.findall(fold(text))]


def terms(text: str, language: str) -> list[str]:
    """Index terms of a text in order, stop words left out.

    Args:
        text: Anything; markup is ignored as far as it is punctuation.
        language: "es", "fr" or "en"; any other value folds without stemming.
    """
    return [term for word in words(text) if (term := index_term(word, language)) is not None]


def frequencies(text: str, language: str) -> Counter[str]:
    """How often each index term stands in the text."""
    return Counter(terms(text, language))


def is_stop_word(word: str, language: str) -> bool:
    """Whether a folded word carries no meaning of its own in the language."""
    return word in STOP_WORDS.get(language, frozenset())


@lru_cache(maxsize=200_000)
def index_term(word: str, language: str) -> str | None:
    """Index term of a word as `words` gives it; None for a stop word."""
    if is_stop_word(word, language):
        return None
    if word[0].isdigit() or language not in _ALGORITHMS:
        return word
    if (known := _IRREGULAR.get(language, {}).get(word)) is not None:
        return known
    if language == "en":
        word = BASES.get(word, word)
    if language in _ENDING and _ENDING[language].search(word):
        word = _restore_ending(word, language)
    stem = fold(_stemmer(language).stemWord(word))
    if language in _TO_MEND and _TO_MEND[language].search(stem):
        for ending, mended in _MENDED_STEMS[language]:
            stem = ending.sub(mended, stem)
    # Snowball's Spanish leaves the plural on words as short as "años" and "días".
    return stem[:-1] if language == "es" and stem == fold(word) and _SHORT_PLURAL.search(stem) else stem


def _restore_ending(word: str, language: str) -> str:
    for ending, restored in _RESTORED_ENDINGS[language]:
        mended, count = ending.subn(restored, word)
        if count:
            return mended
    return word


def _stemmer(language: str) -> Stemmer.Stemmer:
    stemmer = getattr(_stemmers, language, None)
    if stemmer is None:
        stemmer = Stemmer.Stemmer(_ALGORITHMS[language])
        setattr(_stemmers, language, stemmer)
    return stemmer


def detect_language(text: str, *, default: str | None = None) -> str | None:
    """Language whose function words and letters fit the text best, or the default when none does.

    Counts stop words, other frequent words and a few letters that only one of the languages uses; made
    for documents as for questions: a table of names and figures has none. `guess_language` says more of
    short questions.
    """
    return choose_language(text, likely_languages(text)) or default


def choose_language(text: str, likely: Sequence[str]) -> str | None:
    """The one of the likely languages of a text that its words' endings tell, where it is not the only one."""
    if set(likely) == {"es", "fr"}:
        return _by_endings(words(text[:_SAMPLE]))
    return likely[0] if len(likely) == 1 else None


def likely_languages(text: str) -> tuple[str, ...]:
    """The languages that most function words and telling letters of a text are of; all where it has none."""
    sample = text[:_SAMPLE]
    found = words(sample)
    score = {
        language: float(sum(1 for word in found if word in STOP_WORDS[language] or word in TELLING_WORDS[language]))
        for language in LANGUAGES
    }
    lowered = sample.casefold()
    for language, letters in _TELLING_LETTERS.items():
        score[language] += sum(lowered.count(letter) for letter in letters)
    highest = max(score.values())
    return tuple(language for language in LANGUAGES if score[language] == highest)


def _by_endings(found: list[str]) -> str | None:
    """Spanish or French: typed without accents, questions such as "limite de la empresa" share their function words."""
    spanish = sum(1 for word in found if _SPANISH_ENDING.search(word))
    french = sum(1 for word in found if _FRENCH_ENDING.search(word))
    return None if spanish == french else "es" if spanish > french else "fr"


_SPANISH_ENDING = re.compile(r"..(?:[ao][sn]?|ar|ad|ud|cion)$")
_FRENCH_ENDING = re.compile(r"..(?:e|[eo]nt|ee?s|ez|eu[rx]|eau|aux|it|tion|oir)$")

_TELLING_LETTERS = {
    "es": ("¿", "¡", "ñ", "ción", "ú", "ó", "í", "á"),
    "fr": ("ç", "è", "ê", "à", "û", "œ", "qu'", "l'", "d'", "qu’", "l’", "d’"),
    "en": ("'s ", "’s ", "th", "wh"),
}
