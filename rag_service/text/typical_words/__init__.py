"""Common words of each language, folded: their groups of letters are typical of it.

Written for this project from what a speaker knows, not taken from a corpus: words of offices, contracts and everyday
life, in the forms that questions hold them in. A word that languages share stands in the list of each.
"""

from __future__ import annotations

from rag_service.text.typical_words.english import ENGLISH
from rag_service.text.typical_words.french import FRENCH
from rag_service.text.typical_words.spanish import SPANISH

TYPICAL_WORDS: dict[str, frozenset[str]] = {"es": SPANISH, "fr": FRENCH, "en": ENGLISH}
