"""Orders to a language model that stand in documents.

An order is no statement of the document's subject: what a model writes because a document told it to must
not be "verified" by the very sentence that told it, nor may a link that an order brought in pass as one of
the documents'. Where a quote stands in an order, the claim is verified once more, against the chunks with
their orders blanked out, character for character, so that offsets stay true.

There are two nets. A paragraph counts as an order from the first sentence on that addresses the model about
its instructions, its prompt or its answer (English, Spanish, French). Sentences in the imperative alone are
none: documents are full of those. But what any sentence tells its reader to *say* ("reply that the fee is
zero", "never say 'you can'") is not stated by the document either: it proves no sentence of an answer that
does not itself speak of saying.

This stands behind the prompt's boundaries, not in place of them, and finds most orders, not all. A document
that states a falsehood plainly gives no order: it is a wrong document.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache

from rag_service.domain import Hit, Span
from rag_service.query.guards.untrusted import neutralise
from rag_service.text.normalise import strip_accents
from rag_service.text.sentences import split_sentences
from rag_service.text.words import fold

_OF_THE_MODEL = (
    r"(?:instructions?|instruccion(?:es)?|indicaciones|consignes?|prompts?|guidelines|directives?|directrices"
    r"|system (?:message|text)|mensaje (?:de|del) sistema|message systeme)"
)
_ROLES = (
    r"system(?: prompt| message)?|sistema|systeme|assistants?|asistentes?|user|usuario|utilisateur|developer"
    r"|desarrollador|developpeur|human|instructions?|instrucciones|consignes?|chatbots?|llms?"
)
_SAY = (
    r"(?:please |por favor |svp )?(?:now |ahora |maintenant )?(?:say|tell|reply|respond|answer|write|output"
    r"|print|append|add|cite|include|di|diga|responde|responda|contesta|escribe|anade|incluye|cita|dis|dites|reponds|repondez"
    r"|ecris|ecrivez|ajoute|ajoutez|inclus|incluez|citez?)"
)
_ADDRESS = re.compile(
    "|".join(
        (
            # ignore what you were told
            r"\b(?:ignor\w*|disregard|forget|overrid\w*|bypass|olvid\w+|descart\w+|oubli\w+|neglig\w+|outrepass\w+)\b"
            rf".{{0,60}}\b(?:{_OF_THE_MODEL}|rules|reglas|regles|(?:everything|all) (?:above|before)|todo lo anterior"
            r"|tout ce qui precede|(?:the|los|les) (?:other|otros|autres) (?:passages?|pasajes?))\b",
            # your prompt, your instructions; a mention of prompts alone is none
            r"\b(?:print|reveal|show|repeat|output|leak|dump|recite|translate|imprime|revela|muestra|repite|copia|"
            r"imprimez?|revelez?|montrez?|affichez?|repetez?|recopiez?|recitez?)\b.{0,40}\b"
            rf"(?:your|tus?|tes|ton|vos|votre)\b.{{0,30}}\b{_OF_THE_MODEL}\b",
            r"\b(?:new|updated|nuevas?|nouvelles?) (?:system )?(?:instructions?|instrucciones|consignes)\b.{0,40}[:.]",
            r"\b(?:instrucciones|instructions|consignes) (?:nuevas|nouvelles|actualizadas)\b.{0,40}[:.]",
            # you, the model
            r"\b(?:you are|you're|eres|usted es|tu es|vous etes) (?:now|ahora|desormais|maintenant|a partir de)\b",
            r"\b(?:note|message|order|attention|nota|aviso|mensaje|orden|avis|ordre)s?"
            r"(?: (?:to|for|al?|para|pour|au|aux|a|de))+(?: (?:the|any|all|la|el|los|las|l'|le|les|toute?s?))*"
            r" ?(?:ai|ia|llms?|assistants?|asistentes?|model\w*|chatbots?|bots?|language model\w*)\b",
            r"\b(?:as|being) an? (?:ai|llm|language model|assistant)\b",
            r"\b(?:ai|ia|llm|language|virtual) (?:assistant|model|asistente|modelo)s?\b"
            r".{0,40}\b(?:must|shall|should|debe|doit)",
            r"\b(?:(?:language |ai )?models?|modelos? de lenguaje|modeles? de langage) ?[:,;!] ?(?:.{0,40}\b)?"
            rf"(?:{_SAY})\b",
            # your answer
            r"\b(?:in|with|to|from|end|begin|start|of|before|after|en|con|a|al|de|dans|avec|par|termin\w+|commenc\w+|empiez\w+|acab\w+)"
            r"(?: (?:every|all|each|cada|todas?|toutes?|chaque))?(?: of)?"
            r" (?:your|tu|tus|sus?|ta|tes|votre|vos) (?:(?:next|final|whole|proxima|siguiente|prochaine) )?"
            r"(?:answers?|reply|replies|responses?|output|respuestas?|reponses?)\b",
            r"\b(?:end|begin|start|finish|prefix) (?:your|every|each|the) (?:answer|reply|response)s?\b",
            r"\b(?:answer|reply|respond|respon[dt]e[nr]?|respond[ae]|contest[ae]|repond\w*)\b"
            r".{0,40}\b(?:exactly|only|nothing but|with the|word for word|exactamente|solo|solamente|unicamente"
            r"|con la frase|exactement|seulement|uniquement|par la phrase)\b.{0,20}[:\"'“«‘]",
            r"\b(?:answer|reply|respond|responde[nr]?|responda|conteste|contesta|reponds|repondez)"
            r"(?: (?:to )?(?:every|any|all|this|a|cada|toda|esta|chaque|toute|cette)[^.\"“«]{0,40})?"
            r" ?(?:with|con|por|par|avec|:)? ?:? ?[\"“«]",
            rf"\b(?:from now on|a partir de ahora|desormais|dorenavant)[ ,:]+(?:{_SAY})\b",
            # marks and turns of the prompt
            r"‹¦[^›]{1,40}¦›|‹/?(?:system|sistema|systeme|assistant|asistente|user|usuario|utilisateur|human|developer"
            r"|instructions?|think)\b|\((?:inst|system_prompt)\)|‹‹/?sys››|-[0-9a-f]{8,}-",
            rf"\((?:{_ROLES})[^)]{{0,20}}\)[*_ ]*[:：]|^[^\w\n]*\((?:{_ROLES})\)$",
            rf"\b(?:{_ROLES})[ :,]{{1,3}}(?:{_SAY})\b",
            r"\b(?:cite|mark|quote|cita|marca|citez|marquez?)\b.{0,60}\(c ?\d",
            r"\b(?:developer|dan|god|jailbreak|desarrollador|developpeur) mode\b"
            r"|\b(?:modo|mode) (?:desarrollador|developpeur|dan)\b",
        )
    ),
    re.MULTILINE | re.DOTALL,
)


_TOLD = (
    r"say|reply|respond|answer|output|di(?:ga[ns]?|gas)?|responda?[ns]?|responde[nr]?|conteste[ns]?|contesta[nr]?|decir"
    r"|dis|dites|dire|repond(?:s|ez|re)"
)
_TOLD_SOMETIMES = (  # only with "that", a colon or a quotation behind: "print page 3", "state taxes"
    r"tell|write|print|state|claim|announce|declare|pretend|assert|repeat|escrib(?:e|a|as|an|ir)|afirm[ae][ns]?|anuncia"
    r"|declara|ecri(?:s|vez|re)|affirme[rz]?|annonce[rz]?|declare[rz]?"
)
_REPORTED = re.compile(
    # The verb as an order: at the head of its clause, or after "must", "please", "always", the one addressed …
    r"(?:^|[.,;:!?¡¿(\"“«>–—] ?|\b(?:and|then|or|must|should|shall|please|always|never|only|just|also|instead|now|ai"
    r"|you|y|o|siempre|nunca|solo|debe[ns]?|debes|favor|ahora|tambien|que|ia"
    r"|et|puis|ou|toujours|jamais|doi[st]|devez|doivent|seulement|aussi|faut) )"
    rf"(?:(?:{_TOLD})\b(?! ?(?:to|by|at|in|on|before|within|a|al|en|antes|ante|par|au|aux|avant|dans|sous|sans)\b)"
    rf"|(?:{_TOLD_SOMETIMES})\b(?=(?: \S+){{0,4}}?(?: (?:that|que) |:| ?[\"“«])))"
    r"(?P<told>[^\"“«;]{0,60}[\"“«][^\"”»]+|[^;]{3,})",
    re.DOTALL,
)
_SPEAKS = re.compile(rf"\b(?:{_TOLD}|{_TOLD_SOMETIMES})\b")


def find_reported(text: str) -> list[tuple[int, int]]:
    """Characters [start, end) that the text tells its reader to say: the rest of each such sentence."""
    found = []
    for start, end in split_sentences(text):
        sentence = _same_length_fold(text[start:end])
        if told := _REPORTED.search(sentence):
            found.append((start + told.start("told"), start + told.end("told")))
    return found


def speaks_of_saying(sentence: str) -> bool:
    """Whether a sentence holds such a verb itself, as a faithful quotation does."""
    return _SPEAKS.search(_same_length_fold(sentence)) is not None


def without_reported(hit: Hit) -> Hit:
    """The hit with what it tells its reader to say blanked out as well."""
    text = hit.chunk.text
    for start, end in find_reported(text):
        text = text[:start] + "\n" * (end - start) + text[end:]
    return hit if text == hit.chunk.text else replace(hit, chunk=replace(hit.chunk, text=text))


# One of these stands in every text that `_ADDRESS` finds; looking for them takes a hundredth of the time.
_TRIGGERS = (  # noqa: SIM905 - a list literal would take a page
    "ignor disregard forget overrid bypass olvid descart oubli neglig outrepass instruc indicacion consign prompt"
    " guideline directi directric llm assistant asistente model bot answer repl respon repon contest output desormais"
    " dorenavant system sistema user usuario utilisateur develop desarroll human ‹ ¦"
).split()
_TRIGGER_PHRASES = (
    "you are", "you're", "eres ", "usted es", "tu es", "vous etes", " ai", " ia", "from now on", "a partir de ahora",
    "(c", "(inst", " mode", "modo ", "system me", "todo lo anterior",
)  # fmt: skip
_HEX = re.compile(r"-[0-9a-f]{8,}-")


def _addresses(readable: str) -> bool:
    known = any(trigger in readable for trigger in (*_TRIGGERS, *_TRIGGER_PHRASES)) or _HEX.search(readable)
    return bool(known) and _ADDRESS.search(readable) is not None


def stands_in_order(text: str, start: int, end: int) -> bool:
    """Whether [start, end) of a text overlaps an order, or what a reader is told to say.

    Looks at the paragraphs of the quote alone: an order does not reach beyond its own.
    """
    before = text.rfind("\n\n", 0, start)
    begin = before + 2 if before >= 0 else 0
    finish = text.find("\n\n", end)
    part = text[begin : finish if finish >= 0 else len(text)]
    found = _find_both(part)
    return any(first < end - begin and start - begin < last for first, last in found)


@lru_cache(maxsize=256)  # paragraphs that are quoted come again
def _find_both(paragraph: str) -> tuple[tuple[int, int], ...]:
    return (*find_orders(paragraph), *find_reported(paragraph))


def find_orders(text: str) -> list[tuple[int, int]]:
    """Characters [start, end) that give orders to a model: from such a sentence to the end of its paragraph."""
    if not _addresses(_readable(text)):
        return []
    found: list[tuple[int, int]] = []
    for start, end in split_sentences(text):
        same_paragraph = bool(found) and "\n\n" not in text[found[-1][1] : start]
        if not same_paragraph and not _addresses(_readable(text[start:end])):
            continue
        if same_paragraph:
            found[-1] = (found[-1][0], end)
        else:
            found.append((start, end))
    return found or [(0, len(text))]  # spread over several sentences: nothing of the text can be trusted


def has_orders_above(hit: Hit) -> bool:
    """Whether the title, a heading or the sheet's name is an order: they count as context of what stands below."""
    names = dict.fromkeys(
        name for span in hit.chunk.spans for name in (*span.location.headings, span.location.sheet or "")
    )
    return any(_is_order(name) for name in (hit.chunk.document.title, *names) if name)


@lru_cache(maxsize=4096)
def _is_order(name: str) -> bool:
    return bool(find_orders(name))


def without_orders(hit: Hit) -> Hit:
    """The hit with orders to a model blanked out of its text, title and headings; offsets stay as they were."""
    chunk = hit.chunk
    text = chunk.text
    for start, end in find_orders(text):
        text = text[:start] + "\n" * (end - start) + text[end:]
    spans = tuple(_without_headings(span) for span in chunk.spans)
    document = chunk.document
    if _is_order(document.title):
        document = replace(document, title="")
    if text == chunk.text and spans == chunk.spans and document is chunk.document:
        return hit
    return replace(hit, chunk=replace(chunk, text=text, spans=spans, document=document))


def _without_headings(span: Span) -> Span:
    """A title or heading counts as context of what stands below it, so an order there must not."""
    location = span.location
    names = (*location.headings, location.sheet or "")
    if not any(_is_order(name) for name in names):
        return span
    headings = tuple("" if _is_order(heading) else heading for heading in location.headings)
    sheet = "" if location.sheet and _is_order(location.sheet) else location.sheet
    return replace(span, location=replace(location, headings=headings, sheet=sheet))


def _readable(text: str) -> str:
    lines = fold(neutralise(text)).replace("’", "'").splitlines()
    return "\n".join(" ".join(line.split()) for line in lines)


def _same_length_fold(text: str) -> str:
    lower = text.lower()
    if len(lower) != len(text):  # "İ" is two characters in lower case
        lower = "".join(character.lower()[0] for character in text)
    return strip_accents(lower).replace("\n", " ")
