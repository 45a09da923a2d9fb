"""The languages that a request says its user reads."""

from __future__ import annotations

from rag_service.api.http.bodies import AnyRequest
from rag_service.language.languages import language_names

LANGUAGE_COOKIE = "rag_language"  # the page's language, where it was chosen there
_MAX_LANGUAGES = 5  # more are no help
_MAX_PREFERENCES = 50


def read_languages(request: AnyRequest) -> tuple[str, ...]:
    """ISO 639-1 codes from the (untrusted) cookie and from Accept-Language, likeliest first."""
    accepted = read_preferences(request.headers.get("accept-language", ""))
    found = dict.fromkeys([request.cookies.get(LANGUAGE_COOKIE, ""), *accepted])
    return tuple(code for code in found if code in language_names())[:_MAX_LANGUAGES]


def read_preferences(accepted: str) -> list[str]:
    """Languages of an Accept-Language header without their countries, best first."""
    preferences = []
    for part in accepted.split(",")[:_MAX_PREFERENCES]:
        tag, _, parameter = part.strip().partition(";")
        try:
            quality = float(parameter.strip().removeprefix("q=") or 1)
        except ValueError:
            quality = 0.0
        if quality > 0:
            preferences.append((quality, tag.strip().lower().split("-")[0]))
    return [code for _, code in sorted(preferences, key=lambda pair: -pair[0])]
