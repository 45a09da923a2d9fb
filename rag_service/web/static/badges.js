// A citation in the text: what kind of file, where in it, and whether it holds.

import { el, icon } from "./dom.js";
import { t, upright } from "./i18n.js";
import { fullPlace, iconOf, shortPlace } from "./places.js";
import { proofDetail, proofLine, proofWords, signOf, toneOf } from "./proof.js";
import { attachTooltip } from "./tooltip.js";

/**
 * @param citation as the API sends it; {mark, status: "checking" | "pending"} when it has sent none
 * @param {{name: string | null, language: string | null, change?: string, isNamed: boolean}} document its file name and language;
 *   change: what has become of it since, "changed" or "gone"; isNamed false: the badge before is of the same document, and
 *   the place says enough
 * @param open called with the badge and the event when it is activated
 * @param second the second line of its sentence, which it shows while it is pointed at, if there is one by then
 */
export function makeBadge(citation, { name, language, change, isNamed }, open, second = () => null) {
  const status = citation.status;
  const place = upright(shortPlace(citation.location));
  const label = upright(name ?? (citation.documentId ? t("other_document") : t("missing_source", { mark: citation.mark })));
  const isProved = status === "verified" || status === "checking";
  const said = [isProved ? null : proofWords(citation), change ? t(`since_${change}`) : null].filter(Boolean).join(", ");
  const shown = [[isNamed || !place ? label : null, place].filter(Boolean).join(" · "), said].filter(Boolean).join(" ");
  // What is seen stands first in what is heard, so that it can be called by its name (WCAG 2.5.3).
  const whole = [shown, isNamed || !place ? null : label, fullPlace(citation.location), isProved ? proofWords(citation) : null].filter(Boolean).join(", ");
  const badge = el(
    "button",
    { type: "button", className: `badge ${toneOf(citation, change)}`, "data-mark": citation.mark, "data-status": status, "aria-label": whole },
    icon(name ? iconOf(name) : "info", "file-icon"),
    isNamed || !place ? el("span", { className: "badge-name" }, label) : null,
    isNamed && place ? el("span", { className: "dot" }, " · ") : null,
    place ? el("span", { className: "badge-place" }, place) : null,
    icon(signOf(citation, change), "status-icon"),
    said ? " " : null,
    said ? el("span", { className: "badge-status" }, said) : null,
  );
  badge.addEventListener("click", (event) => open(badge, event));
  attachTooltip(badge, () => describe(citation, { label, language, change, hasWords: second() !== null }), (isShown) => second()?.preview(isShown));
  return badge;
}

function describe(citation, { label, language, change, hasWords }) {
  const place = fullPlace(citation.location);
  return [
    el("p", { className: "tooltip-place" }, icon(iconOf(label)), place ? `${label}, ${place}` : label),
    citation.quote && !hasWords ? el("blockquote", { lang: language }, shorten(citation.quote)) : null,
    proofLine(citation, change),
    proofDetail(citation),
  ];
}

/** At most so many characters, cut at a word. */
export const shorten = (text, most = 260) => (text.length > most ? `${text.slice(0, most - 1).replace(/\s+\S*$/, "")}…` : text);
