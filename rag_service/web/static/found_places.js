// Where no answer is certain: the places that come nearest, as cards to open.

import { el, icon } from "./dom.js";
import { t, upright } from "./i18n.js";
import { offsetMap } from "./evidence.js";
import { fullPlace, iconOf } from "./places.js";

const SHOWN = 3; // at first

/** @param places of the `final` event, best first */
export function makePlaces(places) {
  const cards = places.map((place) => el("li", {}, card(place)));
  const more = cards.slice(SHOWN);
  return el(
    "div",
    { className: "found-places" },
    el("ol", {}, ...cards.slice(0, SHOWN)),
    more.length ? el("details", { className: "more-quotes" }, el("summary", {}, icon("chevron"), t("more_places", { count: more.length })), el("ol", { start: SHOWN + 1 }, ...more)) : null,
  );
}

function card(place) {
  const { documentId: id, contentHash, location, chunkId, language, part, text, start, end } = place;
  const name = place.fileName ?? place.title;
  const marked = start === null ? null : { quote: text, start, end };
  const open = async ({ currentTarget }) => (await import("./panel.js")).panel().openDocument({ id, contentHash, name, location, chunkId, language, marked }, currentTarget);
  return el(
    "button",
    { type: "button", className: "found-place", onclick: open },
    el("span", { className: "passage-head" }, icon(iconOf(name)), el("span", {}, el("bdi", {}, upright(name)), location ? ` · ${fullPlace(location)}` : null), el("span", { className: "link" }, t("open_place"))),
    part ? el("span", { className: "muted" }, part) : null,
    el("span", { className: "found-text", lang: language ?? "" }, ...emphasize(text, place.marked)),
  );
}

/** The text with the words of the question in bold. */
function emphasize(text, marked) {
  const offset = offsetMap(text);
  const pieces = [];
  let last = 0;
  for (const { start, end } of marked) {
    pieces.push(text.slice(last, offset(start)), el("b", {}, text.slice(offset(start), offset(end))));
    last = offset(end);
  }
  return [...pieces, text.slice(last)];
}
