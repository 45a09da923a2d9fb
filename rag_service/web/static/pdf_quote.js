// Where on a page of a PDF a quote stands. Only letters and digits are compared: blanks, hyphens and the order of
// punctuation differ between what reads a document and what shows it.

const LETTER = /[\p{L}\p{N}]/u;
const LONG = 12; // letters and digits; so many stand together by no accident
const SHORT = 2; // fewer say nothing

/**
 * Parts of text items that make up the quote.
 *
 * @param items {str, transform} each, as pdf.js gives them
 * @returns {{item: number, from: number, to: number}[]} characters [from, to) of items; empty: it is not on the page
 */
export function findQuote(items, quote) {
  const page = foldItems(items);
  const whole = fold(quote);
  const at = whole ? page.text.indexOf(whole) : -1;
  if (at >= 0) return ranges(page.places.slice(at, at + whole.length));
  const found = [];
  const pieces = quote.split(/\n|\s\|\s|:\s|(?<=[.!?;])\s/).map(fold).filter((piece) => piece.length >= SHORT);
  for (const piece of pieces.filter(({ length }) => length >= LONG)) {
    const first = page.text.indexOf(piece);
    if (first >= 0) found.push(...page.places.slice(first, first + piece.length));
  }
  found.push(...sameLine(page, items, pieces.filter(({ length }) => length < LONG)));
  return ranges(found);
}

/** Cells of a row stand on one line: the pieces on the line that has the most of them. */
function sameLine(page, items, pieces) {
  const lines = new Map();
  for (const piece of new Set(pieces)) {
    for (let at = page.text.indexOf(piece); at >= 0; at = page.text.indexOf(piece, at + piece.length)) {
      const line = Math.round(items[page.places[at].item].transform[5] / 3);
      if (!lines.has(line)) lines.set(line, new Map());
      lines.get(line).set(piece, page.places.slice(at, at + piece.length));
    }
  }
  const [best] = [...lines.values()].sort((a, b) => b.size - a.size);
  return best && best.size * 2 >= pieces.length ? [...best.values()].flat() : [];
}

function foldItems(items) {
  let text = "";
  const places = []; // of each unit of `text`
  for (const [item, { str }] of items.entries()) {
    let from = 0;
    for (const character of str) {
      const folded = fold(character);
      for (let i = 0; i < folded.length; i += 1) places.push({ item, from, to: from + character.length });
      text += folded;
      from += character.length;
    }
  }
  return { text, places };
}

const fold = (text) => [...text.normalize("NFKC").toLowerCase()].filter((one) => LETTER.test(one)).join("");

/** Neighbouring characters of an item as one range. */
function ranges(places) {
  const joined = [];
  for (const { item, from, to } of places) {
    const last = joined.at(-1);
    if (last?.item === item && from >= last.from) last.to = Math.max(last.to, to);
    else joined.push({ item, from, to });
  }
  return joined;
}
