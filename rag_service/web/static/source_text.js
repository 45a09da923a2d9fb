// The stored text around a quote, and what there is to show where no document holds one.

import { readText } from "./api.js";
import { announce, el } from "./dom.js";
import { offsetMap } from "./evidence.js";
import { t } from "./i18n.js";
import { renderPassage } from "./passage.js";

const BEFORE = 600; // characters shown around the quote
const AFTER = 1200;
const STEP = 4000; // characters added by "earlier" and "later", and around the place at which a whole document opens
const MOST = 20_000; // characters that the service gives at once

/** Fill an element with the text around a quote, until `signal` is aborted. */
export async function showText(into, { citation, name, evidence }, signal) {
  const fill = (...children) => {
    into.replaceChildren(...children.filter(Boolean));
    reveal(into.querySelector("mark"));
  };
  const load = async (from, to) => {
    try {
      const body = await readText(citation.documentId, Math.max(0, from), to, signal);
      const shown = locate(body, citation);
      if (!shown) fill(alone(citation.quote), el("p", { className: "muted" }, t("panel_changed")));
      else {
        const mayGrow = body.end - body.start + STEP <= MOST;
        fill(
          mayGrow && body.start > 0 ? more("panel_earlier", () => load(body.start - STEP, body.end)) : null,
          renderPassage(shown.text, shown.quote, name),
          mayGrow && body.end < body.length ? more("panel_later", () => load(body.start, body.end + STEP)) : null,
        );
      }
    } catch (error) {
      if (signal.aborted) return;
      if (!error.problem) throw error;
      const words = t(error.code === "not_found" ? "panel_gone" : "panel_failed");
      fill(excerpt(citation, name, evidence), el("p", { className: "muted" }, words));
      announce(words);
    }
  };
  if (citation.start === null) fill(alone(citation.quote), el("p", { className: "muted" }, t("panel_not_in_text")));
  else await load(citation.start - (citation.isWhole ? STEP : BEFORE), citation.end + (citation.quote && !citation.isWhole ? AFTER : STEP));
}

/** Nothing supports the sentence: what the answer pointed at, so that its reader can judge. */
export function namedOnly(citation, evidence) {
  const named = evidence.passage(citation.mark);
  if (!named) return citation.status === "pending" ? [] : [el("p", {}, t("panel_none"))];
  return [el("h3", {}, t("panel_named")), el("p", { className: "muted" }, named.source?.place ?? ""), renderPassage(named.snippet, null, null)];
}

/** The piece cut at words, and the quote in it, in UTF-16 offsets; null when the text is no longer what was quoted. */
function locate(body, citation) {
  const offset = offsetMap(body.text);
  const [start, end] = [offset(citation.start - body.start), offset(citation.end - body.start)];
  if (body.text.slice(start, end) !== citation.quote) return null;
  const from = body.start > 0 ? Math.min(start, body.text.search(/\s/) + 1) : 0;
  const last = body.text.search(/\s+\S*$/);
  const to = body.end < body.length && last >= end ? last : body.text.length;
  return { text: body.text.slice(from, to), quote: start < end ? { start: start - from, end: end - from } : null };
}

const more = (key, action) => el("button", { type: "button", className: "quiet", onclick: action }, t(key));

const alone = (quote) => renderPassage(quote, { start: 0, end: quote.length }, null);

/** The quote inside the excerpt that came with the answer, or by itself. */
function excerpt(citation, name, evidence) {
  const { snippet } = evidence.contextUsed.find(({ snippet }) => snippet.includes(citation.quote)) ?? {};
  if (!snippet) return alone(citation.quote);
  const start = snippet.indexOf(citation.quote);
  return renderPassage(snippet, { start, end: start + citation.quote.length }, name);
}

/** Scroll the panel to the quote, unless it is in sight as it is. */
function reveal(mark) {
  if (!mark) return;
  const [body, panel] = [".panel-body", ".panel"].map((one) => mark.closest(one).getBoundingClientRect()); // one of them scrolls
  const { top, bottom } = mark.getBoundingClientRect();
  if (top < Math.max(body.top, panel.top) || bottom > Math.min(body.bottom, panel.bottom)) mark.scrollIntoView({ block: "center" });
}
