// A document as a whole, beside what is on the page: its pages or its text, and a search in it.

import { change } from "./api.js";
import { announce, el, icon } from "./dom.js";
import { fold, t, upright } from "./i18n.js";
import { Newest } from "./newest.js";
import { errorNotice } from "./notice.js";
import { extensionOf, fullPlace } from "./places.js";
import { showSource } from "./source.js";

const FOUND = 10; // passages of a search, as many as a search gives
const PAGED = new Set(["pdf", "png", "jpg", "jpeg"]);
const SHOWN = 160; // characters of a passage in the list of what was found
const LEAD = 40; // of them, before the words that were looked for

/**
 * Fill an element.
 *
 * @param {Shown} document with a place, it opens there, and with a quote, that is marked
 * @param signal aborted when something else takes the place
 */
export async function showDocument(into, document, signal) {
  const { id, name, contentHash, chunkId, marked } = document;
  const area = el("div", {});
  const results = el("div", { "aria-live": "polite" });
  const newest = new Newest();
  signal.addEventListener("abort", () => newest.end());
  const show = (passage) => showSource(area, { citation: { documentId: id, contentHash, ...passage }, name, evidence: { contextUsed: [] } }, newest.begin());
  const field = el("input", { type: "search", maxLength: 2000, autocomplete: "off", "aria-label": t("document_search"), placeholder: t("document_search") });
  const form = el("form", { className: "document-search" }, field, el("button", { type: "submit", className: "icon-button", title: t("retrieval_run") }, icon("search"), el("span", { className: "sr-only" }, t("retrieval_run"))));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (field.value.trim()) await find(results, { id, query: field.value.trim() }, show);
  });
  into.replaceChildren(form, results, area);
  const location = document.location ?? (PAGED.has(extensionOf(name)) ? { page: 1, headings: [] } : null);
  await show({ ...(marked ?? { quote: "", start: 0, end: 0 }), location, chunkId, isWhole: true });
}

async function find(results, { id, query }, show) {
  try {
    const { passages } = await change("POST", "/query", { query, documentIds: [id], topK: FOUND, similarityThreshold: 0 });
    const hits = passages.map((one) => ({ ...one, at: fold(one.text).indexOf(fold(query)) }));
    const [found, close] = [hits.filter(({ at }) => at >= 0), hits.filter(({ at }) => at < 0)];
    const words = t("document_found", { count: found.length });
    const list = (title, items) => [el("p", { className: "muted" }, title), el("ol", { className: "found" }, ...items.map((one) => el("li", {}, hit(one, query.length, show))))];
    results.replaceChildren(...list(words, found), ...(close.length ? list(t("document_close"), close) : []));
    announce(words);
  } catch (error) {
    if (!error.problem) throw error;
    results.replaceChildren(errorNotice(error));
  }
}

/** A passage to choose: where it holds the words that were looked for, `length` long, cut and marked around them. */
function hit({ text, at, ...passage }, length, show) {
  const place = fullPlace(passage.location);
  const found = at < 0 ? "" : text.slice(at, at + length);
  const start = passage.start + [...text.slice(0, Math.max(0, at))].length; // in characters, as the service counts
  const onclick = () => show(found ? { ...passage, quote: found, start, end: start + [...found].length, isFound: true } : { ...passage, quote: text });
  const from = at > LEAD ? text.lastIndexOf(" ", at - LEAD) + 1 : 0;
  const [before, after] = at < 0 ? [text.slice(0, SHOWN), ""] : [text.slice(from, at), text.slice(at + length, from + SHOWN)];
  const isCut = from + SHOWN < text.length;
  return el("button", { type: "button", className: "quiet", onclick }, place ? el("strong", {}, place) : null, place ? " " : null,
    upright((from ? "…" : "") + before), found ? el("mark", {}, upright(found)) : null, upright(after + (isCut ? "…" : "")));
}
