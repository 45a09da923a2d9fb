// The source beside the answer: the passage with the quote highlighted at its place.
//
// On wide windows it stands beside the conversation and leaves it usable; on narrow ones it covers it and is
// modal. Either way Escape closes it, and focus goes back to the badge that opened it.

import { readText } from "./api.js";
import { announce, byId, el, icon } from "./dom.js";
import { offsetMap } from "./evidence.js";
import { decimal, t } from "./i18n.js";
import { renderPassage } from "./passage.js";
import { fullPlace, iconOf } from "./places.js";
import { proofDetail, proofLine } from "./proof.js";

const BEFORE = 600; // characters shown around the quote
const AFTER = 1200;
const STEP = 4000; // characters added by "earlier" and "later"
const MOST = 20_000; // characters that the service gives at once
const wide = matchMedia("(min-width: 64rem)");

export class SourcePanel {
  constructor() {
    this._dialog = byId("panel");
    this._opener = null;
    this._request = 0; // only the newest source may fill the panel
    this._dialog.addEventListener("close", () => this._closed());
    this._dialog.addEventListener("click", (event) => {
      if (event.target === this._dialog) this.close(); // the backdrop, when modal
    });
    document.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && this._dialog.open) this.close();
    });
  }

  /** Show what a citation rests on. */
  async open(citation, evidence, badge, sentence) {
    const request = (this._request += 1);
    const name = evidence.nameOf(citation);
    this._opener?.removeAttribute("aria-expanded");
    this._opener = badge;
    badge.setAttribute("aria-expanded", "true");
    const passage = el("div", { className: "panel-passage" });
    this._dialog.replaceChildren(
      this._head(name ?? t(citation.documentId ? "other_document" : "missing_source", { mark: citation.mark }), citation),
      proofLine(citation),
      el(
        "div",
        { className: "panel-body", tabIndex: 0 },
        proofDetail(citation),
        sentence ? el("h3", {}, t("panel_cited")) : null,
        sentence ? el("p", { className: "cited" }, plain(sentence)) : null,
        passage,
      ),
    );
    this._show();
    const fill = (...children) => {
      if (request !== this._request) return;
      passage.replaceChildren(...children.filter(Boolean));
      reveal(passage.querySelector("mark"));
    };
    if (citation.quote === null || citation.quote === undefined) fill(...namedOnly(citation, evidence));
    else await this._fillAround(citation, name, evidence, fill);
  }

  close() {
    if (this._dialog.open) this._dialog.close();
  }

  _head(name, citation) {
    const place = fullPlace(citation.location);
    const close = el("button", { type: "button", className: "icon-button", title: t("panel_close"), onclick: () => this.close() },
      icon("close"), el("span", { className: "sr-only" }, t("panel_close")));
    return el(
      "div",
      { className: "panel-head" },
      icon(iconOf(name), "icon-file"),
      el("div", {}, el("h2", { id: "panel-title", tabIndex: -1 }, name), place ? el("p", { className: "muted" }, place) : null),
      close,
    );
  }

  _show() {
    if (!this._dialog.open) {
      if (wide.matches) this._dialog.show();
      else this._dialog.showModal();
      document.body.classList.add("has-panel");
    }
    byId("panel-title").focus();
  }

  _closed() {
    this._request += 1;
    document.body.classList.remove("has-panel");
    this._opener?.removeAttribute("aria-expanded");
    // The badge is made anew when its answer grows; the question box is the next best place to go on.
    (this._opener?.isConnected ? this._opener : byId("question")).focus();
    this._opener = null;
  }

  async _fillAround(citation, name, evidence, fill) {
    const heading = el("h3", {}, t("panel_quote"), el("span", { className: "muted" }, ` · ${t("panel_support")} ${decimal(citation.support)}`));
    fill(heading, el("p", { className: "muted" }, t("panel_loading")));
    const load = async (from, to) => {
      try {
        const body = await readText(citation.documentId, Math.max(0, from), to);
        const shown = locate(body, citation);
        if (!shown) fill(heading, alone(citation.quote), el("p", { className: "muted" }, t("panel_changed")));
        else {
          const mayGrow = body.end - body.start + STEP <= MOST;
          fill(
            heading,
            mayGrow && body.start > 0 ? more("panel_earlier", () => load(body.start - STEP, body.end)) : null,
            renderPassage(shown.text, shown.quote, name),
            mayGrow && body.end < body.length ? more("panel_later", () => load(body.start, body.end + STEP)) : null,
          );
        }
      } catch (error) {
        if (!error.problem) throw error;
        fill(heading, excerpt(citation, name, evidence), el("p", { className: "muted" }, t("panel_failed")));
        announce(t("panel_failed"));
      }
    };
    await load(citation.start - BEFORE, citation.end + AFTER);
  }
}

/** The piece cut at words, and the quote in it, in UTF-16 offsets; null when the text is no longer what was quoted. */
function locate(body, citation) {
  const offset = offsetMap(body.text);
  const [start, end] = [offset(citation.start - body.start), offset(citation.end - body.start)];
  if (body.text.slice(start, end) !== citation.quote) return null;
  const from = body.start > 0 ? Math.min(start, body.text.search(/\s/) + 1) : 0;
  const last = body.text.search(/\s+\S*$/);
  const to = body.end < body.length && last >= end ? last : body.text.length;
  return { text: body.text.slice(from, to), quote: { start: start - from, end: end - from } };
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

/** Nothing supports the sentence: what the answer pointed at, so that its reader can judge. */
function namedOnly(citation, evidence) {
  const named = evidence.passage(citation.mark);
  if (!named) return citation.status === "pending" ? [] : [el("p", {}, t("panel_none"))];
  return [el("h3", {}, t("panel_named")), el("p", { className: "muted" }, named.source?.place ?? ""), renderPassage(named.snippet, null, null)];
}

/** Scroll the panel to the quote, unless it is in sight as it is. */
function reveal(mark) {
  if (!mark) return;
  const body = mark.closest(".panel-body").getBoundingClientRect();
  const { top, bottom } = mark.getBoundingClientRect();
  if (top < body.top || bottom > body.bottom) mark.scrollIntoView({ block: "center" });
}

const BULLET = /^[\s>#*+•-]*(?:\d{1,3}[.)]\s+)?/;

/** A sentence of the answer without its marks and markup. */
const plain = (sentence) => sentence.replace(BULLET, "").replace(/\s*[[［【]\s?[Cc]\s?[0-9][^\]］】]{0,200}[\]］】]/g, "").replace(/\*\*|`/g, "").replace(/^\|\s*|\s*\|\s*$/g, "").replace(/\s*\|\s*/g, " · ").trim();
