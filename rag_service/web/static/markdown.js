// A small part of Markdown as blocks and tokens. Every piece knows where it stands in the source, because
// citations point into the source by offset. Nothing here makes elements, and nothing is ever HTML.

const FENCE = /^\s{0,3}(```|~~~)/;
const HEADING = /^\s{0,3}(#{1,6})\s+/;
const RULE = /^\s{0,3}(-{3,}|\*{3,}|_{3,})\s*$/;
const ITEM = /^(\s*)([-*+•]|\d{1,3}[.)])\s+/;
const MOST_LABEL = 200; // characters; the names of several columns may be joined
const QUOTE = /^\s{0,3}>\s?/;
const TABLE_RULE = /^\s*\|?\s*:?-{2,}:?\s*(\|\s*:?-{2,}:?\s*)*\|?\s*$/;
const ROW = /^\s*\|[^|]*\|[^|]*\|/;
const MARKS_AT_END = /\s*(?:[[［【]\s?[Cc]\s?[0-9][^\]］】]{0,40}[\]］】][\s.;]*)+$/;
const AFTER_MARKS = /[\s.;]*$/;
const S = "[ \\t\\u00a0\\u202f]";
// As in rag_service/language/sentences.py: [C1], [c1], [C 1], [C1, C2], [C1-3], also in full-width brackets.
const MARK =
  `[\\[［【]${S}?[Cc]${S}?[0-9]{1,9}` +
  `(?:${S}{0,2}[,;–-]${S}{0,2}(?:[Cc]${S}?)?[0-9]{1,9}){0,63}${S}?[\\]］】]`;
// Every repetition is bounded: a hostile text must not cost more than its length.
const INLINE = new RegExp(
  [
    "`(?<code>[^`\\n]{1,2000})`",
    `(?<mark>${MARK})`,
    "\\*\\*(?=\\S)(?<strong>[^\\n]{1,2000}?)\\*\\*",
    "(?<![\\w*])\\*(?=[^\\s*])(?<em>[^*\\n]{1,2000}?)\\*(?![\\w*])",
    "!?\\[(?<label>[^\\[\\]\\n]{0,500})\\]\\((?<url>[^()\\s]{1,2000})(?:\\s[^()\\n]{0,200})?\\)",
    "\\\\(?<escaped>[\\\\`*_\\[\\]#|>])",
  ].join("|"),
  "dg",
);

/** The blocks of `source`, each {type, from, to, …} with the ranges of its content. */
export function parseBlocks(source) {
  const lines = readLines(source);
  const blocks = [];
  for (let at = 0; at < lines.length; ) {
    if (!lines[at].text.trim()) {
      at += 1;
      continue;
    }
    const [type, next, content] = readBlock(lines, at);
    blocks.push({ type, from: lines[at].start, to: lines[next - 1].end, ...content });
    at = next;
  }
  return blocks;
}

export function readLines(source) {
  let start = 0;
  return source.split("\n").map((text) => {
    const line = { text, start, end: start + text.length };
    start = line.end + 1;
    return line;
  });
}

function readBlock(lines, at) {
  const { text, start, end } = lines[at];
  const fence = FENCE.exec(text);
  if (fence) return readCode(lines, at, fence[1]);
  const heading = HEADING.exec(text);
  if (heading) return ["heading", at + 1, { level: heading[1].length, start: start + heading[0].length, end }];
  if (RULE.test(text)) return ["rule", at + 1, {}];
  const labelled = readLabelled(lines, at);
  if (labelled) return ["table", labelled.next, labelled];
  if (startsTable(lines, at)) return readTable(lines, at);
  if (ITEM.test(text)) return readList(lines, at);
  if (QUOTE.test(text)) {
    const next = advance(lines, at, (line) => QUOTE.test(line.text));
    const inside = lines.slice(at, next).map((line) => ({ ...line, start: line.start + QUOTE.exec(line.text)[0].length }));
    return ["quote", next, { lines: inside }];
  }
  const next = advance(lines, at + 1, (line, i) => line.text.trim() && !startsBlock(lines, i));
  return ["paragraph", next, { start, end: lines[next - 1].end }];
}

function startsBlock(lines, at) {
  const { text } = lines[at];
  return [FENCE, HEADING, RULE, ITEM, QUOTE].some((pattern) => pattern.test(text)) || startsTable(lines, at) || readLabels(lines[at])?.cells.length > 1;
}

const hasHead = (lines, at) => lines[at].text.includes("|") && TABLE_RULE.test(lines[at + 1]?.text ?? "");
// A row may also be quoted by itself, without its head.
const startsTable = (lines, at) => hasHead(lines, at) || ROW.test(lines[at].text);

/**
 * Lines that are rows of a table, "Product: Hex bolt M8 | Stock: 120", from lines[at] on: {next, head, rows, marks} with
 * the ranges of labels, values and marks; null where the line is none.
 */
export function readLabelled(lines, at) {
  const columns = new Map(); // label → its range
  const rows = [];
  let next = at;
  for (; next < lines.length; next += 1) {
    const row = readLabels(lines[next]);
    if (!row || (rows.length ? !row.cells.some(({ label }) => columns.has(label)) : row.cells.length < 2)) break;
    for (const { label, range } of row.cells) if (!columns.has(label)) columns.set(label, range);
    rows.push(row);
  }
  if (!rows.length) return null;
  const inColumns = ({ cells }) => [...columns.keys()].map((label) => cells.find((cell) => cell.label === label) ?? null);
  return { next, head: [...columns.values()], rows: rows.map(inColumns), marks: rows.map(({ marks }) => marks) };
}

/** The cells of a row with a label each, and its marks behind them; null for any other line. */
function readLabels({ text, start }) {
  if (!text.includes(": ")) return null;
  const end = MARKS_AT_END.exec(text)?.index ?? text.trimEnd().length;
  const cells = [];
  let at = 0;
  for (const part of text.slice(0, end).split(" | ")) {
    const colon = part.indexOf(": ");
    const label = part.slice(0, colon);
    if (colon < 1 || colon > MOST_LABEL || cells.some((cell) => cell.label === label)) return null;
    const from = start + at;
    cells.push({ label, range: { start: from, end: from + colon }, start: from + colon + 2, end: from + part.length });
    at += part.length + 3;
  }
  return { cells, marks: end < text.trimEnd().length ? { start: start + end, end: start + text.search(AFTER_MARKS) } : null };
}

function advance(lines, at, belongs) {
  while (at < lines.length && belongs(lines[at], at)) at += 1;
  return at;
}

function readCode(lines, at, fence) {
  const close = advance(lines, at + 1, (line) => !line.text.trim().startsWith(fence));
  const start = lines[at + 1]?.start ?? lines[at].end;
  const end = close > at + 1 ? lines[close - 1].end : start;
  return ["code", Math.min(close + 1, lines.length), { start, end }];
}

function readTable(lines, at) {
  if (!hasHead(lines, at)) {
    const next = advance(lines, at + 1, (line, i) => ROW.test(line.text) && !hasHead(lines, i));
    return ["table", next, { head: null, rows: lines.slice(at, next).map((line) => readRow(line, countColumns(line))) }];
  }
  const next = advance(lines, at + 2, (line) => line.text.includes("|"));
  const columns = readCells(lines[at]).length;
  const [head, ...rows] = [lines[at], ...lines.slice(at + 2, next)].map((line) => readRow(line, columns));
  return ["table", next, { head, rows }];
}

/** A row of so many cells; what follows the last of them, such as a mark, belongs to it as its `more`. */
function readRow(line, columns) {
  const cells = readCells(line);
  const more = cells.splice(Math.max(1, columns));
  if (cells.length) cells.at(-1).more = more;
  return cells;
}

/** Columns of a row without a head: the cells that a bar closes. */
const countColumns = ({ text }) => readCells({ text: text.slice(0, text.lastIndexOf("|") + 1), start: 0 }).length;

/** @typedef {{start: number, end: number, more?: Cell[]}} Cell */

/** @returns {Cell[]} */
function readCells({ text, start }) {
  const cells = [];
  for (const raw of text.split(/(?<!\\)\|/)) {
    const content = raw.trim();
    const from = start + raw.length - raw.trimStart().length;
    cells.push({ start: content ? from : start, end: content ? from + content.length : start });
    start += raw.length + 1;
  }
  // A bar at either end closes a cell and opens none.
  const isBlank = (cell) => cell?.start === cell?.end;
  if (isBlank(cells[0])) cells.shift();
  if (isBlank(cells.at(-1))) cells.pop();
  return cells;
}

function readList(lines, at) {
  const items = [];
  let next = at;
  while (next < lines.length) {
    const { text, start, end } = lines[next];
    const marker = ITEM.exec(text);
    const above = items.at(-1);
    if (marker) {
      const number = parseInt(marker[2], 10);
      items.push({ indent: marker[1].length, number: number >= 0 ? number : null, start: start + marker[0].length, end });
    } else if (!text.trim()) {
      if (!ITEM.test(lines[next + 1]?.text ?? "")) break;
    } else if (!lines[next - 1].text.trim() || startsBlock(lines, next)) break;
    else above.end = end; // the item goes on in the next line
    next += 1;
  }
  return ["list", next, { items }];
}

/** The tokens of source[from, to): {type: text | code | mark | strong | em | link, start, end, …}. */
export function parseInline(source, from, to) {
  const tokens = [];
  const piece = source.slice(from, to);
  let at = 0;
  const text = (end) => {
    if (end > at) tokens.push({ type: "text", start: from + at, end: from + end });
  };
  for (const match of piece.matchAll(INLINE)) {
    text(match.index);
    const [type, [start, end]] = Object.entries(match.indices.groups).find(([, range]) => range);
    const token = { type, start: from + start, end: from + end };
    if (type === "strong" || type === "em") token.children = parseInline(source, token.start, token.end);
    if (type === "label") Object.assign(token, { type: "link", url: match.groups.url });
    if (type === "escaped") token.type = "text";
    tokens.push(token);
    at = match.index + match[0].length;
  }
  text(piece.length);
  return tokens;
}

/** The passage numbers in a mark: "[C1, 3-5]" → [1, 3, 4, 5]. */
export function readNumbers(mark) {
  const numbers = new Set();
  let previous = 0;
  for (const match of mark.matchAll(/([–-]?)[ \t\u00a0\u202fCc]*([0-9]+)/g)) {
    const number = Number(match[2]);
    if (match[1] && previous < number && number <= previous + 20) {
      for (let between = previous; between < number; between += 1) numbers.add(between);
    }
    numbers.add(number);
    previous = number;
  }
  return [...numbers];
}
