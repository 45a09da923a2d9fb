// A citation in the text: what kind of file, where in it, and whether it holds.

import { el, hidden, icon } from "./dom.js";
import { t, upright } from "./i18n.js";
import { fullPlace, iconOf, shortPlace } from "./places.js";
import { proofDetail, proofLine, proofOf, proofWords } from "./proof.js";
import { attachTooltip } from "./tooltip.js";

const TAIL = /[^](?:![A-Z]+\d+(?::[A-Z]+\d+)?|[/.[][^/.[]{1,20})$/; // the cell, the last step of a path: never cut off
const SILENT = new Set(["quote", "checking"]); // the words are for screen readers: all is well, or soon known

/**
 * @param citation as the API sends it; {mark, status: "checking" | "pending"} when it has sent none
 * @param {string | null} name file name of its document
 * @param open called with the badge when it is activated
 */
export function makeBadge(citation, name, open) {
  const status = citation.status;
  const place = upright(shortPlace(citation.location));
  const end = place ? place.length - (TAIL.exec(place)?.[0].length ?? 1) + 1 : 0;
  const label = upright(name ?? (citation.documentId ? t("other_document") : t("missing_source", { mark: citation.mark })));
  const badge = el(
    "button",
    { type: "button", className: `badge status-${status}`, "data-mark": citation.mark, "data-status": status },
    icon(name ? iconOf(name) : "info", "file-icon"),
    el("span", { className: "badge-name" }, label),
    place && el("span", { className: "badge-place" }, el("span", { className: "badge-cut" }, el("span", { className: "dot" }, " · "), place.slice(0, end)), place.slice(end)),
    icon(status, "status-icon"),
    hidden(", "),
    SILENT.has(proofOf(citation)) ? hidden(proofWords(citation)) : el("span", { className: "badge-status" }, proofWords(citation)),
  );
  badge.addEventListener("click", () => open(badge));
  attachTooltip(badge, () => describe(citation, label));
  return badge;
}

function describe(citation, label) {
  const place = fullPlace(citation.location);
  return [
    el("p", { className: "tooltip-place" }, icon(iconOf(label)), place ? `${label}, ${place}` : label),
    citation.quote ? el("blockquote", {}, shorten(citation.quote)) : null,
    proofLine(citation),
    proofDetail(citation),
  ];
}

/** At most 260 characters, cut at a word. */
const shorten = (text) => (text.length > 260 ? `${text.slice(0, 259).replace(/\s+\S*$/, "")}…` : text);
