// What is known of an answer's citations: which one a mark in the text stands for, and which parts of the
// text nothing supports. Offsets of the API count characters; JavaScript counts UTF-16 units.

/** The document name, passage and citation behind every mark. */
export class Evidence {
  constructor() {
    this.sources = [];
    this.contextUsed = [];
    this.citations = [];
    this.unmarkedSentences = 0;
  }

  /** Take in `sources`, one `citation`, or `final`, which replaces everything. */
  take(event, data) {
    if (event === "citation") this.citations.push(data);
    else {
      this.sources = data.sources;
      this.contextUsed = data.contextUsed;
      this.citations = data.citations ?? this.citations;
      this.unmarkedSentences = data.unmarkedSentences ?? 0;
    }
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

  /** The citations with their sentence in UTF-16 offsets of `text`. */
  placeIn(text) {
    const offset = offsetMap(text);
    return this.citations.map((citation) => ({
      ...citation,
      from: offset(citation.sentenceStart),
      to: offset(citation.sentenceEnd),
    }));
  }
}

/** The citation of the `nth` mark of this number in its sentence; undefined while it is not checked. */
export function citationAt(placed, number, at, nth = 0) {
  const inside = placed.filter(({ mark, from, to }) => mark === number && from <= at && at < to);
  return inside[Math.min(nth, inside.length - 1)];
}

/**
 * Parts of the text whose proof is wanting, in order, without overlap: `unverified` and `misplaced` sentences,
 * none of whose citations is verified (the latter stand elsewhere than cited), and, once the service has
 * counted such, `unmarked` ones, which no citation covers.
 */
export function findUnsupported(text, placed, unmarkedSentences) {
  const sentences = new Map();
  for (const { from, to, status } of placed) {
    const sentence = sentences.get(from) ?? { start: from, end: to, statuses: new Set() };
    sentence.statuses.add(status);
    sentences.set(from, sentence);
  }
  const found = [];
  let at = 0;
  const addGap = (end) => {
    const gap = text.slice(at, end);
    const saysSomething = gap.match(/\p{L}{2,}/gu)?.length > 1;
    if (!unmarkedSentences || !saysSomething) return;
    const start = at + gap.length - gap.trimStart().length;
    found.push({ start, end: at + gap.trimEnd().length, kind: "unmarked" });
  };
  for (const sentence of [...sentences.values()].sort((a, b) => a.start - b.start)) {
    addGap(sentence.start);
    const kind = sentence.statuses.has("misattributed") ? "misplaced" : "unverified";
    if (!sentence.statuses.has("verified")) found.push({ start: sentence.start, end: sentence.end, kind });
    at = Math.max(at, sentence.end);
  }
  addGap(text.length);
  return found;
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
