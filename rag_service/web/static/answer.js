// The text of an answer while it arrives and when it is complete. Only blocks that changed are made again:
// an answer of many pages must not cost its whole length with every token.

import { makeBadge } from "./badges.js";
import { el, hidden, icon } from "./dom.js";
import { citationAt, findUnproved, offsetMap } from "./evidence.js";
import { notes, t, upright } from "./i18n.js";
import { parseBlocks } from "./markdown.js";
import { fullPlace, iconOf } from "./places.js";
import { legendOf, proofOf } from "./proof.js";
import { renderBlock } from "./render.js";
import { makeSecondLine } from "./second_line.js";

const HALF_MARK = /[[［【][^\]］】\n]{0,40}$/; // "[C1", whose rest is on its way

export class AnswerView {
  /**
   * @param evidence of the answer, filled by the caller
   * @param open called with (citation, badge, sentence) when a badge is activated
   */
  constructor(evidence, open) {
    this.element = el("div", { className: "answer-text" });
    this._evidence = evidence;
    this._open = open;
    this._blocks = []; // {signature, element} in the order of the page
    this._text = "";
    this._lines = new Map(); // start of a sentence → its second line
    this._kept = new Map(); // start of a sentence → whether the reader has opened or closed its second line
  }

  /**
   * Show what there is of an answer. Returns the kinds of marked sentences in it.
   *
   * @param state writing: more will come; ended: nothing more, but it is not whole; final: all of it
   */
  show(whole, state) {
    const text = state === "writing" ? whole.replace(HALF_MARK, "") : whole;
    this._text = text;
    const { placed, flagged } = this._evidence.placeIn(text);
    const unproved = findUnproved(placed, flagged);
    // What the service asks proof of is not its own, whatever it sounds like.
    const notes = findNotes(text).filter((note) => !unproved.some((range) => overlaps(note, range)));
    const ranges = [...unproved, ...notes].sort((a, b) => a.start - b.start).map((range) => ({ ...range, wrap: wrapAs(range) }));
    const blocks = parseBlocks(text);
    const kinds = new Set();
    this._blocks.splice(blocks.length).forEach(({ element }) => element.remove());
    blocks.forEach((block, i) => {
      const inside = placed.filter(({ from, to }) => from < block.to && to > block.from);
      const flags = ranges.filter(({ start, end }) => start < block.to && end > block.from);
      flags.forEach(({ kind }) => kind !== "note" && kinds.add(kind));
      const shape = [inside.map((one) => [one.status, one.method, this._evidence.changeOf(one)]), flags.map(({ kind, start }) => kind + start), state];
      const signature = `${block.from} ${JSON.stringify(shape)} ${text.slice(block.from, block.to)}`;
      if (this._blocks[i]?.signature === signature) return;
      const seen = new Map(); // how often a mark has come up in its sentence
      const marks = []; // what the badges stand for
      const badge = (number, at) => this._badge({ text, placed: inside, all: placed, state, seen, marks }, number, at);
      const element = renderBlock(block, { source: text, ranges: flags, badge });
      if (state !== "writing") this._addSecondLines(marks, inside, text);
      element.lang = this._languageOf(inside);
      if (this._blocks[i]) this._blocks[i].element.replaceWith(element);
      else this.element.append(element);
      this._blocks[i] = { signature, element };
    });
    return kinds;
  }

  /** Put the cited blocks behind the first `open` ones behind a click. */
  fold(open) {
    const more = this._blocks.map(({ element }) => element).filter((element) => element.querySelector(".badge")).slice(open);
    if (!more.length) return;
    const details = el("details", { className: "more-quotes" }, el("summary", {}, icon("chevron"), t("more_quotes", { count: more.length })));
    more[0].before(details);
    details.append(...more);
  }

  /** The language of a block that quotes documents of one language and nothing else; else "". */
  _languageOf(citations) {
    const languages = new Set(citations.map((one) => (proofOf(one) === "quote" ? this._evidence.languageOf(one) : null)));
    return languages.size === 1 ? ([...languages][0] ?? "") : "";
  }

  /** Put a second line behind the last badge of each sentence. A sentence that the next mark covers is part of that line. */
  _addSecondLines(marks, placed, text) {
    const groups = new Map(); // start of a sentence → {marks, citations}
    for (const mark of marks.filter(({ citation, badge }) => citation.from !== undefined && !badge.closest("table"))) {
      const { from } = mark.citation;
      (groups.get(from) ?? groups.set(from, { marks: [], citations: [] }).get(from)).marks.push(mark);
    }
    for (const citation of placed) {
      const group = groups.get(citation.from) ?? [...groups.values()].find(({ marks: [{ at }] }) => at >= citation.to);
      group?.citations.push(citation);
    }
    for (const [from, { marks: own, citations }] of groups) {
      const sentences = [...new Set(citations.map((one) => one.from))].map((start) => citations.filter((one) => one.from === start));
      const second = makeSecondLine(
        sentences.map((cited) => ({ sentence: text.slice(cited[0].from, cited[0].to), citations: cited })),
        (citation) => this._evidence.languageOf(citation),
        this._kept.get(from),
        (isOpen) => this._kept.set(from, isOpen),
      );
      if (!second) continue;
      own.at(-1).badge.after(second.toggle, second.line);
      for (const mark of own) mark.second = second;
      for (const [{ from: start }] of sentences) this._lines.set(start, second);
    }
  }

  /** Lead to the sentence of a citation if it is marked as not proved, else to the first that is, and open its second line. */
  lead(citation) {
    const at = citation && offsetMap(this._text)(citation.sentenceStart);
    const flags = /** @type {HTMLElement[]} */ ([...this.element.querySelectorAll(".flag")]);
    const sentence = flags.find(({ dataset }) => Number(dataset.start) === at) ?? flags[0];
    if (!sentence) return;
    this._lines.get(Number(sentence.dataset.start))?.open();
    sentence.scrollIntoView({ block: "center" });
    sentence.focus({ preventScroll: true });
  }

  _badge({ text, placed, all, state, seen, marks }, number, at) {
    const first = citationAt(placed, number, at);
    const key = `${number} ${first?.from}`;
    const nth = seen.get(key) ?? 0;
    seen.set(key, nth + 1);
    const missing = { mark: number, status: state === "writing" ? "checking" : "pending", location: null };
    const citation = citationAt(placed, number, at, nth) ?? missing;
    const sentence = first ? text.slice(first.from, first.to) : "";
    const name = this._evidence.nameOf(citation);
    const isNamed = !citation.documentId || all[citation.index - 1]?.documentId !== citation.documentId;
    const open = (badge, event) => mark.second?.tap(event) || this._open(citation, badge, sentence);
    const badge = makeBadge(citation, { name, language: this._evidence.languageOf(citation), change: this._evidence.changeOf(citation), isNamed }, open, () => mark.second);
    const mark = { at, badge, citation, second: null };
    marks.push(mark);
    return badge;
  }
}

/** The documents that several citations stand in, each once, with the places. @param evidence of the answer */
export function makeSources(evidence) {
  const documents = new Map();
  for (const citation of evidence.citations) {
    const name = evidence.nameOf(citation);
    if (!citation.documentId || !name) continue;
    const { places } = documents.get(citation.documentId) ?? documents.set(citation.documentId, { citation, name, places: new Set() }).get(citation.documentId);
    places.add(fullPlace(citation.location));
  }
  if (evidence.citations.length < 2 || !documents.size) return null;
  const lines = [...documents.values()].map(({ citation, name, places }) => {
    const { documentId: id, contentHash, location, chunkId } = citation;
    const open = async ({ currentTarget }) => (await import("./panel.js")).panel().openDocument({ id, contentHash, name, location, chunkId }, currentTarget);
    const change = evidence.changeOf(citation);
    const where = [...places, change ? t(`since_${change}`) : null].filter(Boolean).join("; ");
    const shown = el("bdi", {}, upright(name));
    const link = change === "gone" ? shown : el("button", { type: "button", className: "link", onclick: open }, shown);
    return el("li", {}, icon(iconOf(name)), el("span", {}, link, where ? ` · ${where}` : null));
  });
  return el("div", { className: "sources" }, el("h3", {}, t("sources")), el("ul", {}, ...lines));
}

const overlaps = (one, other) => one.start < other.end && other.start < one.end;

const NOTES = new RegExp(notes.map((words) => words.replace(/[.*+?^${}()|[\]\\]/g, "\\$&").replace("\\{names\\}", ".{1,400}?")).join("|"), "g");

/** What the service itself says in the text: that a sentence was left out, that the model failed, which files there are. */
const findNotes = (text) => [...text.matchAll(NOTES)].map(({ 0: { length }, index }) => ({ start: index, end: index + length, kind: "note" }));

const wrapAs = ({ kind, start }) => (isFirst) =>
  kind === "note"
    ? el("span", { className: "note", role: "note" }, isFirst ? icon("info") : null)
    : el("span", { className: `flag flag-${kind}`, tabIndex: -1, "data-start": start }, isFirst ? hidden(`${t(`flag_${kind}`)} `) : null);

/** What the signs of the citations and the underlines mean; null where all are exact quotes, or there are none. */
export function makeLegend(kinds, citations) {
  if (!kinds.size && citations.every((citation) => proofOf(citation) === "quote")) return null;
  const entries = legendOf(citations);
  if (kinds.has("unmarked")) {
    entries.push(el("p", {}, icon("alert"), el("span", { className: "flag flag-unmarked" }, t("legend_unmarked"))));
  }
  return entries.length ? el("ul", { className: "legend" }, ...entries.map((entry) => el("li", {}, entry))) : null;
}
