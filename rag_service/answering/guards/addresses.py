"""How texts address language models, beyond what the data of each language says: by name, as a third person, and in
languages that the service does not answer in, such as German and Italian.

All are regular expressions over folded text. What they find is no proof of anything; the text stays where it is.
"""

from __future__ import annotations

# Names of one thing only, and names that people, stars and animals have, too, which count in lists and with a number.
_SURE = r"(?:chat ?gpt|gpt-?\d\w*|deepseek|openai|ms copilot|microsoft copilot)"
_ALSO = r"(?:claude|gemini|copilot|llama|mistral|grok|qwen)"
_NAME = rf"(?:{_SURE}|{_ALSO})(?:[- ]?\d[\w.]*)?"
_MUST = (
    r"(?:must|shall|should|has to|have to|is to|are to|will|muss|mussen|soll|sollen|deve|devono|debe"
    r"|deben|doit|doivent|devem)"
)
_NAMED = (
    rf"{_NAME}(?:, | ?(?:and|or|und|oder|e|o|y|et|ou|&|/) ?){_NAME}",
    rf"{_SURE} ?[:,!]",
    rf"{_SURE}\b.{{0,40}}\b{_MUST}\b",
)

# (models, modal, verbs of saying) of each language: "The model must write …".
_DICTATIONS = (
    (
        r"(?:(?:the|any|every|each|all|an?) )?(?:ai|llms?|(?:language |ai )?models?|(?:ai "
        r"|virtual )?assistants?|chat ?bots?)",
        r"(?:must|shall|should|has to|have to|needs? to|is to|are to|is required to|are required to|will)",
        r"(?:say|write|answer|reply|respond|state|claim|tell|output|repeat|report|conclude|confirm|quote)",
    ),
    (
        r"(?:(?:die|eine|jede) ki|ki-\w+|(?:sprach|ki-)?modelle?|assistent\w*|chatbots?)",
        r"(?:muss|mussen|soll|sollen|hat|haben)",
        r"(?:sagen|schreiben|antworten|ausgeben|behaupten|nennen|wiederholen|bestatigen)",
    ),
    (
        r"(?:ia|modell[oi]|assistent[ei]|chatbot)",
        r"(?:deve|devono|dovra|dovranno)",
        r"(?:dire|scrivere|rispondere|affermare|riportare|ripetere|confermare)",
    ),
    (
        r"(?:ia|modelos?|asistentes?|chatbots?)",
        r"(?:debe|deben|debera|deberan|tiene que|tienen que|ha de|han de)",
        r"(?:decir|escribir|responder|contestar|afirmar|repetir|confirmar)",
    ),
    (
        r"(?:ia|modeles?|assistants?|chatbots?)",
        r"(?:doit|doivent|devra|devront)",
        r"(?:dire|ecrire|repondre|affirmer|repeter|confirmer)",
    ),
    (
        r"(?:ia|modelos?|assistentes?|chatbots?)",
        r"(?:deve|devem|devera|deverao|tem de|tem que)",
        r"(?:dizer|escrever|responder|afirmar|repetir|confirmar)",
    ),
)
_DICTATED = tuple(rf"{who}\b[^.!?]{{0,40}}\b{must} (?:\w+ ){{0,3}}{say}\b" for who, must, say in _DICTATIONS)

_IF_YOU_ARE = (
    r"if you(?: are|'re) (?:an? )?(?:ai|llm|(?:large )?language model|chat ?bot"
    r"|(?:ai|virtual) assistant|assistant(?= ?[,:;]))\b",
    r"(?:wenn|falls|sofern) (?:du|sie) (?:eine?n? )?(?:ki\b|ki-|llm|sprachmodell|chatbot|assistent)",
    r"se (?:sei|siete) (?:un'? ?|una )?(?:ia|llm|modello|chatbot|assistente)\b",
    r"si eres (?:una? )?(?:ia|llm|modelo|chatbot|asistente)\b",
    r"si (?:tu es|vous etes) (?:une? )?(?:ia|llm|modele|chatbot|assistant)\b",
    r"se (?:voce e|tu es|es|for) (?:uma? )?(?:ia|llm|modelo|chatbot|assistente)\b",
)

_VOID = (
    r"(?:previous|prior|earlier|above|other) (?:instructions?|prompts?|directives?)\b.{0,30}\b(?:void"
    r"|invalid|obsolete"
    r"|cancell?ed|revoked|withdrawn|superseded|no longer|replaced|not valid)\b",
    r"(?:vorherigen?|bisherigen?|fruheren?|obigen?) (?:anweisung\w*|vorgaben"
    r"|instruktion\w*)\b.{0,30}\b(?:ungultig|nichtig"
    r"|nicht mehr|aufgehoben|hinfallig)\b",
    r"istruzioni (?:precedenti|sopra)\b.{0,30}\b(?:null[ae]|annullate|non valide|non valgono)\b",
    r"instrucciones anteriores\b.{0,30}\b(?:anuladas|nulas|invalidas|sin efecto|no valen)\b",
    r"(?:consignes|instructions) precedentes\b.{0,30}\b(?:annulees|nulles|caduques|plus)\b",
    r"instrucoes anteriores\b.{0,30}\b(?:anuladas|nulas|invalidas|sem efeito)\b",
)

_GERMAN = (
    r"(?:ignorier\w*|vergiss|vergesst|vergessen sie|missachte\w*)\b(?! nicht).{0,60}\b(?:anweisungen"
    r"|instruktionen|vorgaben"
    r"|prompts?|alles (?:davor|obige|bisherige))\b",
    r"(?:zeig\w*|nenne?|wiederhole?|verrate?)\b.{0,40}\b(?:deine?n?|ihre?n?)\b.{0,30}\b(?:anweisungen|instruktionen"
    r"|system-? ?prompts?|prompts?)\b",
    r"neue (?:anweisung|instruktion)(?:en)?\b.{0,40}[:.]",
    r"du bist (?:jetzt|nun|ab jetzt|ab sofort)\b",
    r"(?:hinweis|nachricht|anweisung|notiz|befehl)e?n? (?:an|fur)(?: (?:die|das|den|alle"
    r"|jede[sn]?))* ?(?:ki\b|llms?|sprachmodell"
    r"|assistent|modelle?\b|chatbots?|bots?\b)",
    r"(?:in|mit|am ende) (?:deiner|eurer|jeder) (?:naechsten |nachsten )?antwort",
    r"""antworte\w*\b.{0,40}\b(?:genau|nur|ausschliesslich|wortlich)\b.{0,20}[:"'“«‘„]""",
    r"ab (?:jetzt|sofort)[ ,:]+(?:sag|antworte|schreib)\w*",
)
_ITALIAN = (
    r"(?:ignora(?:te|re)?|dimentica(?:te|re)?|trascura(?:te)?)\b.{0,60}\b(?:istruzioni|direttive|prompts?"
    r"|tutto (?:quanto|cio))\b",
    r"(?:mostra|rivela|ripeti|stampa)\w*\b.{0,40}\b(?:tu[oe]i?|vostr[eo])\b.{0,30}\b(?:istruzioni|prompts?)\b",
    r"nuove istruzioni\b.{0,40}[:.]",
    r"(?:nota|avviso|messaggio|ordine) (?:per|a|agli|all[aeo'])(?: ?(?:la|il|lo|gli|tutti|l'))* ?(?:ia\b"
    r"|llms?|assistent|modell"
    r"|chatbots?|bots?\b)",
    r"(?:nella|alla fine della|con la|in) (?:tua|vostra|ogni) (?:prossima )?risposta\b",
    r"""rispond(?:i|ete)\b.{0,40}\b(?:esattamente|solo|soltanto|unicamente)\b.{0,20}[:"'“«‘]""",
    r"d'ora in poi[ ,:]+(?:di|rispond|scriv)\w*",
)
# Notes to whoever checks the answer.
_CHECKERS = (
    r"(?:note|message|instruction|order|attention)s? (?:to|for)(?: (?:the|any|all|every))* ?"
    r"(?:fact.?)?(?:checker|verifier|grader|evaluator)s?\b",
    r"(?:hinweis|nachricht|anweisung|notiz|befehl)e?n? (?:an|fur)(?: (?:die|das|den|alle|jede[sn]?))* ?"
    r"(?:fakten)?(?:prufer|bewerter|verifizierer)",
    r"(?:nota|aviso|mensaje|orden)s? (?:al?|para)(?: (?:la|el|los|las))* ?(?:verificador|evaluador|comprobador)",
    r"(?:note|message|avis|ordre)s? (?:pour|aux?|a)(?: (?:la|l'|le|les|toute?s?))* ?(?:verificat|evaluat)",
    r"(?:nota|aviso|mensagem|ordem)s? (?:para|aos?|as?)(?: (?:os?|as?|tod[oa]s?))* ?(?:verificador|avaliador)",
    r"(?:nota|avviso|messaggio|ordine) (?:per|al?|agli|all[aeo'])(?: ?(?:la|il|lo|gli|tutti|l'))* ?"
    r"(?:verificator|valutator)",
)

ADDRESSES = (*_NAMED, *_DICTATED, *_IF_YOU_ARE, *_VOID, *_GERMAN, *_ITALIAN, *_CHECKERS)
# Every text that these find contains one of these pieces.
TRIGGERS = (
    "gpt", "deepseek", "openai", "copilot", "claude", "gemini", "llama", "mistral", "grok", "qwen", "llm", "model",
    "assist", "asist", "bot", " ai", "ie ki", "ne ki", "de ki", "ki-", " ia", "anweis", "instru", "vorgab", "prompt",
    "directiv", "istruz", "consign", "bisherige", "du bist", "antwort", "rispo", "ab jetzt", "ab sofort", "d'ora",
    "dirett", "tutto ", "an ki", "ur ki", "checker", "verif", "grader", "evaluat", "evaluad", "prufer", "bewerter",
    "comprobador", "avaliador", "valutator",
)  # fmt: skip
# An order that ends so is about what follows it, in another paragraph, too.
POINTS_ON = (
    r"(?:[:：]|\b(?:following|next|below|folgend\w*|nachste\w*|unten|siguientes?|abajo|suivante?s?"
    r"|ci-dessous|seguintes?|abaixo"
    r"|seguent[ei]|sotto)\b.{0,60})\W*$"
)
