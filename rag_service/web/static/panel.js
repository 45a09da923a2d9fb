// The source beside the answer: the passage with the quote highlighted at its place.
//
// On wide windows it stands beside the conversation and leaves it usable; on narrow ones it covers it and is
// modal. Either way Escape closes it, and focus goes back to the badge that opened it.

import { byId, el, icon } from "./dom.js";
import { plain } from "./evidence.js";
import { t, upright } from "./i18n.js";
import { Newest } from "./newest.js";
import { fullPlace, iconOf, shortPlace } from "./places.js";
import { proofDetail, proofLine } from "./proof.js";
import { showDocument } from "./document_view.js";
import { showSource } from "./source.js";
import { quietly } from "./tooltip.js";

const wide = matchMedia("(min-width: 64rem)");

let only = null;

/** The panel of the page. */
export const panel = () => (only ??= new SourcePanel());

class SourcePanel {
  constructor() {
    this._dialog = byId("panel");
    this._opener = null;
    this._newest = new Newest(); // only the newest source may fill the panel
    this._dialog.addEventListener("close", () => this._dialog.open || this._closed()); // open: a quick reader has gone on
    this._dialog.addEventListener("click", (event) => {
      if (event.target === this._dialog) this.close(); // the backdrop, when modal
    });
    document.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && this._dialog.open) this.close();
    });
  }

  /** Show what a citation rests on. */
  async open(citation, { evidence, rating }, badge, sentence) {
    const signal = this._begin(badge);
    const name = evidence.nameOf(citation);
    const passage = el("div", { className: "panel-passage", lang: evidence.languageOf(citation) });
    this._dialog.replaceChildren(
      this._head(name ?? t(citation.documentId ? "other_document" : "missing_source", { mark: citation.mark }), citation),
      proofLine(citation, evidence.changeOf(citation)),
      el(
        "div",
        { className: "panel-body", tabIndex: 0 },
        proofDetail(citation),
        sentence ? el("h3", {}, t("panel_cited")) : null,
        sentence ? el("p", { className: "cited" }, plain(sentence)) : null,
        ...this._words(citation, name, evidence, passage),
        citation.quote ? el("h3", {}, t("panel_quote")) : null,
        passage,
        rating ? el("p", { className: "panel-rating" }, el("span", { className: "muted" }, t("citation_question")), rating.buttons) : null,
        rating?.more,
        citation.documentId && name && evidence.changeOf(citation) !== "gone" ? this._wholeDocument(citation, name, evidence.changeOf(citation)) : null,
      ),
    );
    this._show();
    await showSource(passage, { citation, name, evidence }, signal);
  }

  /** Show a document as a whole. @param {Shown} document @param {HTMLElement} opener has the focus afterwards */
  async openDocument(document, opener) {
    const signal = this._begin(opener);
    const body = el("div", { className: "panel-passage", lang: document.language });
    this._dialog.replaceChildren(this._head(document.name, {}), el("div", { className: "panel-body", tabIndex: 0 }, body));
    this._show();
    await showDocument(body, document, signal);
  }

  _begin(opener) {
    if (opener !== this._opener) this._opener?.removeAttribute("aria-expanded");
    this._opener = opener;
    opener.setAttribute("aria-expanded", "true");
    return this._newest.begin();
  }

  close() {
    if (this._dialog.open) quietly(() => this._dialog.close()); // it gives focus back by itself, too
  }

  /** All words that a sentence rests on, where there are several: each is shown where it stands. */
  _words(citation, name, evidence, passage) {
    const words = citation.evidence ?? [];
    if (words.length < 2) return [];
    const buttons = words.map((one) => {
      const onclick = () => {
        for (const other of buttons) other.setAttribute("aria-pressed", String(other === button));
        showSource(passage, { citation: { ...citation, ...one }, name, evidence }, this._newest.begin());
      };
      const place = shortPlace(one.location);
      const button = el("button", { type: "button", className: "quiet", "aria-pressed": String(one === words[0]), onclick }, `“${one.quote}”`, place ? `, ${place}` : "");
      return button;
    });
    return [el("h3", {}, t("panel_evidence")), el("ul", { className: "panel-words" }, ...buttons.map((button) => el("li", {}, button)))];
  }

  /** Opens where the quote stands, which stays marked unless the document has changed. */
  _wholeDocument({ documentId, contentHash, location, chunkId, quote, start, end }, name, change) {
    const marked = quote && start !== null && !change ? { quote, start, end } : null;
    const onclick = () => this.openDocument({ id: documentId, contentHash, name, location, chunkId, marked }, this._opener);
    return el("p", {}, el("button", { type: "button", className: "quiet", onclick }, icon(iconOf(name)), t("open_document")));
  }

  _head(name, citation) {
    const place = fullPlace(citation.location);
    const close = el("button", { type: "button", className: "icon-button", title: t("panel_close"), onclick: () => this.close() },
      icon("close"), el("span", { className: "sr-only" }, t("panel_close")));
    return el(
      "div",
      { className: "panel-head" },
      icon(iconOf(name), "icon-file"),
      el("div", {}, el("h2", { id: "panel-title", tabIndex: -1, title: upright(name) }, upright(name)), place ? el("p", { className: "muted" }, place) : null),
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
    this._newest.end();
    document.body.classList.remove("has-panel");
    this._opener?.removeAttribute("aria-expanded");
    // The badge is made anew when its answer grows, a list when it is fetched; the next best place to go on is the question
    // box, or the heading of what is shown.
    const places = [this._opener, byId("question"), document.querySelector(".view:not([hidden]) h1")];
    quietly(() => places.find((one) => one?.isConnected && one.checkVisibility())?.focus());
    this._opener = null;
  }
}
