// A page of a PDF or an image as its author made it, with the quote marked.

import { el, hidden, icon } from "./dom.js";
import { fold, t } from "./i18n.js";
import { Newest } from "./newest.js";
import { openImage, openPdf } from "./pdf_document.js";
import { extensionOf } from "./places.js";

const ZOOMS = [1, 1.5, 2.25];
const NEVER = new Promise(() => {});
const SHARPEST = 2; // pixels of the canvas per pixel of the page's layout

/** Show the page of a citation in an element of the page. Throws when it cannot be shown. */
export async function showOriginal(into, { citation, name }) {
  const { pdf, lost } = extensionOf(name) === "pdf" ? await openPdf(citation) : { pdf: openImage(citation), lost: NEVER };
  const opened = await Promise.race([pdf, lost]);
  const cited = citation.isFound ? await Promise.race([pageWith(citation, opened), lost]) : citation.location.page;
  const view = new PdfView(into, { pdf: opened, lost, name, citation, cited });
  await view.draw();
}

class PdfView {
  constructor(into, { pdf, lost, name, citation, cited }) {
    this._pdf = pdf;
    this._lost = lost;
    this._name = name;
    this._citation = citation;
    this._cited = cited;
    this._number = Math.min(this._cited, pdf.numPages);
    this._zoom = 0; // index of ZOOMS
    this._newest = new Newest(); // only the newest drawing is shown
    this._sheet = el("div", { className: "pdf-page" });
    this._scroll = el("div", { className: "pdf-scroll", tabIndex: 0, role: "region", "aria-label": t("view_page") }, this._sheet);
    this._where = el("span", { className: "pdf-where", role: "status" });
    this._previous = button("previous_page", "chevron", () => this._turn(-1), "turned");
    this._next = button("next_page", "chevron", () => this._turn(1));
    this._larger = button("zoom", "zoom", () => this._enlarge());
    this._missing = el("p", { className: "muted", hidden: true }, t("quote_unmarked"));
    const bar = el("div", { className: "pdf-bar" }, this._previous, this._where, this._next, this._larger);
    into.replaceChildren(bar, this._missing, this._scroll);
  }

  /** Throws when the page cannot be shown. */
  draw() {
    return Promise.race([this._draw(), this._lost]);
  }

  async _draw() {
    const signal = this._newest.begin();
    const page = await this._pdf.getPage(this._number);
    const width = this._scroll.clientWidth * ZOOMS[this._zoom];
    const viewport = page.getViewport({ scale: width / page.getViewport({ scale: 1 }).width });
    const ratio = Math.min(devicePixelRatio, SHARPEST);
    const words = t("page_of", { page: this._number, total: this._pdf.numPages });
    const canvas = el("canvas", { width: viewport.width * ratio, height: viewport.height * ratio, role: "img", "aria-label": `${this._name}, ${words}` });
    await page.render({ canvas, viewport, transform: [ratio, 0, 0, ratio, 0, 0] }).promise;
    const marks = this._number === this._cited ? await makeMarks(this._citation, page) : [];
    if (signal.aborted) return;
    this._sheet.style.width = `${ZOOMS[this._zoom] * 100}%`;
    this._sheet.replaceChildren(canvas, ...marks);
    this._missing.hidden = marks.length > 0 || this._number !== this._cited || !this._citation.quote;
    this._where.textContent = words;
    this._previous.disabled = this._number === 1;
    this._next.disabled = this._number === this._pdf.numPages;
    marks[0]?.scrollIntoView({ block: "center", inline: "center" });
  }

  _turn(by) {
    this._number += by;
    this._redraw();
  }

  _enlarge() {
    this._zoom = (this._zoom + 1) % ZOOMS.length;
    this._redraw();
  }

  async _redraw() {
    try {
      await this.draw();
    } catch (error) {
      console.info("page not shown", error);
      this._sheet.replaceChildren(el("p", { className: "muted", role: "alert" }, t("page_failed")));
    }
  }
}

function button(key, shape, onclick, extra = "") {
  return el("button", { type: "button", className: "icon-button", title: t(key), onclick }, icon(shape, extra), hidden(t(key)));
}

/** The boxes of a quote over the page, in shares of its size; the whole quote is read with the first. */
async function makeMarks({ quote, location, isFound }, page) {
  const found = isFound ? await findWords(quote, page) : [];
  const boxes = found.length ? found : (location.boxes ?? []);
  return boxes.map((box, index) => makeMark(index ? "" : quote, shares(...box)));
}

/** The page of a passage on which words stand that a search has found. */
async function pageWith({ quote, location: { page, lastPage } }, pdf) {
  for (let number = page; number <= Math.min(lastPage ?? page, pdf.numPages); number++) {
    if ((await findWords(quote, await pdf.getPage(number))).length) return number;
  }
  return page;
}

/** Boxes of words that a search has found: of them it knows only in which passage they stand. */
async function findWords(words, page) {
  const { items = [] } = (await page.getTextContent?.()) ?? {};
  const { viewBox, width, height } = { ...page.getViewport({ scale: 1 }) };
  const isUpright = viewBox && width === viewBox[2] - viewBox[0];
  if (!isUpright) return [];
  const wanted = fold(words);
  return items.flatMap(({ str, transform: [, across, , , x, y], width: length, height: tall }) => {
    if (across) return []; // not along a line
    const base = viewBox[3] - y;
    return startsOf(wanted, fold(str)).map((at) => {
      const [left, right] = [at, at + wanted.length].map((place) => x - viewBox[0] + (length * place) / str.length);
      return [(left / width) * 1000, ((base - tall) / height) * 1000, (right / width) * 1000, ((base + tall / 4) / height) * 1000];
    });
  });
}

/** Where one text begins in another, each time. */
function startsOf(words, text) {
  const starts = [];
  for (let at = text.indexOf(words); at >= 0; at = text.indexOf(words, at + words.length)) starts.push(at);
  return starts;
}

function makeMark(text, box) {
  const mark = el("mark", { className: "pdf-mark" }, hidden(text));
  Object.assign(mark.style, box);
  return mark;
}

/** A box in thousandths of the page as a style. */
const shares = (left, top, right, bottom) => ({
  left: `${left / 10}%`, top: `${top / 10}%`, width: `${(right - left) / 10}%`, height: `${(bottom - top) / 10}%`,
});
