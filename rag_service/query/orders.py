"""Orders to a language model that stand in documents.

An order is no statement of the document's subject: what a model writes because a document told it to must
not be "verified" by the very sentence that told it, nor may a link that an order brought in pass as one of
the documents'. So before an answer is checked, orders are blanked out of the chunks it is checked against,
character for character, and offsets stay true.

A paragraph counts as an order from the first sentence on that addresses the model about its instructions,
its prompt or its answer (English, Spanish, French). Sentences in the imperative alone are none: documents
are full of those. This is a net behind the prompt's boundaries, not in place of them; a document that
states a falsehood plainly is not an order but a wrong document.
"""

from __future__ import annotations

import re
from dataclasses import replace

from rag_service.domain import Hit
from rag_service.query.untrusted import neutralise
from rag_service.text.sentences import split_sentences
from rag_service.text.words import fold

_OF_THE_MODEL = (
    r"(?:instructions?|instruccion(?:es)?|indicaciones|consignes?|prompts?|guidelines|directives?|directrices"
    r"|system (?:message|text)|mensaje (?:de|del) sistema|message systeme)"
)
_ADDRESS = re.compile(
    "|".join(
        (
            # ignore what you were told
            r"\b(?:ignor\w*|disregard|forget|overrid\w*|bypass|olvid\w+|descart\w+|oubli\w+|neglig\w+|outrepass\w+)\b"
            rf".{{0,60}}\b(?:{_OF_THE_MODEL}|rules|reglas|regles|(?:everything|all) (?:above|before)|todo lo anterior"
            r"|tout ce qui precede|(?:the|los|les) (?:other|otros|autres) (?:passages?|pasajes?))\b",
            # your prompt, your instructions
            r"\b(?:your|tu|tus|sus?|vuestr[oa]s?|ton|tes|votre|vos|the|el|las?|le|les) "
            r"(?:(?:full|own|entire|hidden|secret|initial|original|new|complete|propi[oa]s?|nuevas?|"
            r"nouvelles?|propres?) )?(?:system |initial )?prompt\b",
            r"\b(?:system prompt|prompt (?:del?|de) sistema|prompt systeme|invite systeme|instrucciones del sistema"
            r"|instructions systeme|consignes systeme)\b",
            r"\b(?:print|reveal|show|repeat|output|leak|dump|recite|translate|imprime|revela|muestra|repite|copia|"
            r"imprimez?|revelez?|montrez?|affichez?|repetez?|recopiez?|recitez?)\b.{0,40}\b"
            rf"(?:your|tus?|tes|ton|vos|votre)\b.{{0,30}}\b{_OF_THE_MODEL}\b",
            r"\b(?:new|nuevas?|nouvelles?) (?:system )?(?:instructions?|instrucciones|consignes)\b.{0,40}[:.]",
            # you, the model
            r"\b(?:you are|you're|eres|usted es|tu es|vous etes) (?:now|ahora|desormais|maintenant|a partir de)\b",
            r"\b(?:note|message|order|attention|nota|aviso|mensaje|orden|avis|ordre)s?"
            r"(?: (?:to|for|al?|para|pour|au|aux|a|de))+(?: (?:the|any|all|la|el|los|las|l'|le|les|toute?s?))*"
            r" ?(?:ai|ia|llms?|assistants?|asistentes?|model\w*|chatbots?|bots?|language model\w*)\b",
            r"\b(?:as|being) an? (?:ai|llm|language model|assistant)\b",
            r"\b(?:ai|ia|llm|language|virtual) (?:assistant|model|asistente|modelo)s?\b"
            r".{0,40}\b(?:must|shall|should|debe|doit)",
            r"\b(?:assistants?|asistentes?|chatbots?|llms?|(?:language )?models?|modelos? de lenguaje"
            r"|modeles? de langage)"
            r"\b ?[:,;!].{0,80}\b(?:say|reply|answer|write|output|append|add|cite|di|responde|escribe|anade|cita"
            r"|dis|dites|repond\w*|ecri\w+|ajoute\w*|cite\w*)\b",
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
            # marks and turns of the prompt
            r"‹¦[^›]{1,40}¦›|\((?:inst|system_prompt)\)|^\W*\((?:system|sistema|systeme|assistant|asistente|developer|desarrollador)"
            r"[^)]{0,20}\)[*_ ]*:",
            r"\b(?:cite|mark|quote|cita|marca|citez|marquez?)\b.{0,60}\(c ?\d",
            r"\b(?:developer|dan|god|jailbreak|desarrollador|developpeur) mode\b"
            r"|\b(?:modo|mode) (?:desarrollador|developpeur|dan)\b",
        )
    ),
    re.MULTILINE | re.DOTALL,
)


def find_orders(text: str) -> list[tuple[int, int]]:
    """Characters [start, end) that give orders to a model: from such a sentence to the end of its paragraph."""
    if not _ADDRESS.search(_readable(text)):
        return []
    found: list[tuple[int, int]] = []
    for start, end in split_sentences(text):
        same_paragraph = bool(found) and "\n\n" not in text[found[-1][1] : start]
        if not same_paragraph and not _ADDRESS.search(_readable(text[start:end])):
            continue
        if same_paragraph:
            found[-1] = (found[-1][0], end)
        else:
            found.append((start, end))
    return found or [(0, len(text))]  # spread over several sentences: nothing of the text can be trusted


def without_orders(hit: Hit) -> Hit:
    """The hit with orders to a model blanked out, its length and offsets as they were."""
    text = hit.chunk.text
    orders = find_orders(text)
    if not orders:
        return hit
    for start, end in orders:
        text = text[:start] + "\n" * (end - start) + text[end:]
    return replace(hit, chunk=replace(hit.chunk, text=text))


def _readable(text: str) -> str:
    lines = fold(neutralise(text)).replace("’", "'").splitlines()
    return "\n".join(" ".join(line.split()) for line in lines)
