"""English words whose forms no rule leads back to their base: irregular verbs and plurals.

Who asks "who pays for it" must find "is paid by". A form that is a word of its own as well (left, saw, found)
goes with its base, too: in question and text alike, so that nothing is lost but the distinction.
"""

from __future__ import annotations

_FORMS = """
arise arose arisen, awake awoke awoken, become became, begin began begun, bend bent, bind bound, bite bit bitten,
bleed bled, blow blew blown, break broke broken, breed bred, bring brought, build built, burn burnt, buy bought, catch
caught, choose chose chosen, cling clung, come came, creep crept, deal dealt, dig dug, draw drew drawn, dream dreamt,
drink drank drunk, drive drove driven, eat ate eaten, fall fell fallen, feed fed, feel felt, fight fought, find found,
flee fled, fly flew flown, forbid forbade forbidden, forget forgot forgotten, forgive forgave forgiven, freeze froze
frozen, get got gotten, give gave given, go went gone, grow grew grown, hang hung, hear heard, hide hid hidden, hold
held, keep kept, know knew known, lay laid, lead led, learn learnt, leave left, lend lent, lose lost, make made, mean
meant, meet met, mislead misled, oversee oversaw overseen, overtake overtook overtaken, pay paid, repay repaid, prove
proven, rebuild rebuilt, resell resold, rewrite rewrote rewritten, ride rode ridden, ring rang rung, rise rose risen,
run ran, say said, see saw seen, seek sought, sell sold, send sent, shake shook shaken, shoot shot, show shown, shrink
shrank shrunk, sing sang sung, sink sank sunk, sit sat, sleep slept, speak spoke spoken, spend spent, spring sprang
sprung, stand stood, steal stole stolen, stick stuck, strike struck, swear swore sworn, sweep swept, swim swam swum,
take took taken, teach taught, tear tore torn, tell told, think thought, throw threw thrown, undergo underwent
undergone, understand understood, undertake undertook undertaken, wake woke woken, wear wore worn, weave wove woven,
win won, withdraw withdrew withdrawn, withhold withheld, write wrote written, child children, foot feet, goose geese,
half halves, knife knives, loaf loaves, man men, mouse mice, ox oxen, person people, shelf shelves, thief thieves,
tooth teeth, wife wives, wolf wolves, woman women
"""

BASES: dict[str, str] = {
    form: base for base, *forms in (entry.split() for entry in _FORMS.split(",")) for form in forms
}
