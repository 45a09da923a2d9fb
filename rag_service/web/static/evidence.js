// What is known of an answer's citations: which one a mark in the text stands for, and which parts of the
// text nothing supports. Offsets of the API count characters; JavaScript counts UTF-16 units.

/** The document name, passage and citation behind every mark. */
export class Evidence {
  constructor() {
    this.sources = [];
    this.contextUsed = [];
    this.citations = [];
    this.flagged = null; // sentences without proof; known at the end
    this.changes = {}; // documents that are no longer as they were cited: "changed" or "gone", by id
  }

  /** Take in `sources`, one `step` or `citation`, or `final`, which replaces everything. */
  take(event, data) {
    if (event === "citation") this._takeCitation(data);
    else if (event === "step") this.contextUsed = [...this.contextUsed, ...data.contextUsed];
    else {
      this.sources = data.sources;
      this.contextUsed = data.contextUsed;
      this.citations = data.citations ?? this.citations;
      this.flagged = data.flagged ?? null;
    }
  }

  /** A citation; one of the same mark and sentence is replaced: a judge has decided about it. */
  _takeCitation(citation) {
    const isSame = (one) =>
      one.mark === citation.mark && one.sentenceStart === citation.sentenceStart && one.status === "unchecked";
    const at = this.citations.findIndex(isSame);
    if (at < 0) this.citations.push(citation);
    else this.citations[at] = citation;
  }

  /** The passage put before the model as [Cn], with its source; undefined when there was none. */
  passage(mark) {
    const context = this.contextUsed.find((passage) => passage.mark === mark);
    if (!context) return undefined;
    const source = this.sources.find(
      (one) => one.documentId === context.documentId && one.chunkIndex === context.chunkIndex,
    );
    return { ...context, source };
  }

  /** File name (or title) of the document that a citation leads to; null when it leads nowhere. */
  nameOf({ documentId, title, mark }) {
    const source = this.sources.find((one) => one.documentId === documentId);
    if (documentId) return source?.fileName ?? title ?? null;
    const named = this.passage(mark)?.source;
    return named?.fileName ?? named?.title ?? null;
  }

  /** What has become of the document that a citation leads to: "changed" or "gone"; undefined: it is as it was. */
  changeOf({ documentId }) {
    return this.changes[documentId];
  }

  /** The language of the document that a citation leads to; null where it is not known. */
  languageOf({ documentId }) {
    return this.sources.find((one) => one.documentId === documentId)?.language ?? null;
  }

  /** The citations and the flagged sentences in UTF-16 offsets of `text`. */
  placeIn(text) {
    const offset = offsetMap(text);
    const flagged = this.flagged?.map(({ start, end }) => ({ start: offset(start), end: offset(end) })) ?? null;
    const placed = this.citations.map((citation, index) => ({
      ...citation,
      index,
      from: offset(citation.sentenceStart),
      to: offset(citation.sentenceEnd),
    }));
    return { placed, flagged };
  }
}

/** The citation of the `nth` mark of this number in its sentence; undefined while it is not checked. */
export function citationAt(placed, number, at, nth = 0) {
  const inside = placed.filter(({ mark, from, to }) => mark === number && from <= at && at < to);
  return inside[Math.min(nth, inside.length - 1)];
}

/**
 * Sentences whose proof is wanting, in order: `unverified` (the source does not say it), `misplaced` (another passage
 * does), `differs` (a figure is not in what it cites), `reworded` (other words, which nobody checked) and `unmarked` (it
 * cites nothing).
 *
 * @param flagged what the service found at the end; null while citations are still being checked
 */
export function findUnproved(placed, flagged) {
  const sentences = flagged ?? groupSentences(placed);
  const unproved = sentences.map(({ start, end }) => {
    return { start, end, kind: kindOf(placed.filter(({ from, to }) => from < end && to > start)) };
  });
  return unproved.sort((a, b) => a.start - b.start);
}

function kindOf(cited) {
  const statuses = new Set(cited.map(({ status }) => status));
  if (!statuses.size) return "unmarked";
  if (statuses.has("contradicted") || statuses.has("not_found")) return "unverified";
  if (statuses.has("misattributed")) return "misplaced";
  if (cited.some(doubtedFigure)) return "differs";
  return statuses.has("unchecked") ? "reworded" : "unverified";
}

/** The figure of a sentence that stands in nothing that it cites; null: the service found none. */
export const doubtedFigure = ({ status, missing }) => (status === "unchecked" ? (missing ?? null) : null);

const BULLET = /^[\s>#*+•-]*(?:\d{1,3}[.)]\s+)?/;

/** A sentence of the answer without its marks and markup. */
export const plain = (sentence) => sentence.replace(BULLET, "").replace(/\s*[[［【]\s?[Cc]\s?[0-9][^\]］】]{0,200}[\]］】]/g, "").replace(/\*\*|`/g, "").replace(/^\|\s*|\s*\|\s*$/g, "").replace(/\s*\|\s*/g, " · ").trim();

/** Sentences none of whose citations so far is verified. */
function groupSentences(placed) {
  const sentences = new Map(placed.map(({ from, to }) => [from, { start: from, end: to }]));
  for (const { from, status } of placed) if (status === "verified") sentences.delete(from);
  return [...sentences.values()];
}

/** From character offsets to UTF-16 offsets: they differ only in texts with characters beyond the BMP. */
export function offsetMap(text) {
  if (!/[\u{10000}-\u{10ffff}]/u.test(text)) return (offset) => offset;
  const offsets = [];
  let at = 0;
  for (const character of text) {
    offsets.push(at);
    at += character.length;
  }
  offsets.push(at);
  return (offset) => offsets[Math.min(offset, offsets.length - 1)];
}
