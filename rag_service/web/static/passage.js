// The text around a quote as its reader knows it: cells of a sheet as a table, Markdown as it looks, and
// everything else line by line. The quote is highlighted at its offsets, whatever the text looks like.

import { el } from "./dom.js";
import { parseBlocks } from "./markdown.js";
import { extensionOf } from "./places.js";
import { appendText, renderBlock } from "./render.js";

const TABULAR = new Set(["xlsx", "xls", "csv", "tsv"]);
const WRAPPED = 60; // characters; a shorter line of a PDF ends where its author ended it
const MARKDOWN = new Set(["md", "markdown"]);

/**
 * @param text the piece of the document
 * @param quote {start, end} in `text`, or null when there is none
 * @param fileName tells how to show it
 */
export function renderPassage(text, quote, fileName) {
  const ranges = quote ? [{ ...quote, wrap: () => el("mark") }] : [];
  const context = { source: text, ranges, badge: null, told: new Set() };
  const kind = extensionOf(fileName);
  const children = TABULAR.has(kind) ? tables(context) : MARKDOWN.has(kind) ? blocks(context) : null;
  const element = el("div", { className: "passage-text" }, ...(children ?? []));
  if (children && (!quote || element.querySelector("mark"))) return element;
  element.replaceChildren(lines({ ...context, told: new Set() }, kind === "pdf"));
  return element;
}

/** Text line by line. A PDF breaks its lines at the width of its page: such breaks are let go. */
function lines(context, isWrapped) {
  const element = el("p", { className: "plain" });
  let start = 0;
  for (const line of context.source.split("\n")) {
    const end = start + line.length;
    appendText(element, start, end, context);
    const goesOn = isWrapped && line.length > WRAPPED && context.source[end + 1] !== "\n";
    element.append(goesOn ? " " : "\n");
    start = end + 1;
  }
  return element;
}

const blocks = (context) => parseBlocks(context.source).map((block) => renderBlock(block, context));

/** Lines "Product: bolt | Stock: 120" that follow each other with the same labels are one table. */
function tables(context) {
  const children = [];
  let rows = [];
  const flush = () => {
    if (rows.length) children.push(makeTable(rows, context));
    rows = [];
  };
  let start = 0;
  for (const line of context.source.split("\n")) {
    const cells = readCells(line, start);
    const end = start + line.length;
    if (cells) {
      if (rows.length && !cells.every(({ label }) => rows[0].some((cell) => cell.label === label))) flush();
      rows.push(cells);
    } else {
      flush();
      if (line.trim()) {
        const paragraph = el("p");
        appendText(paragraph, start, end, context);
        children.push(paragraph);
      }
    }
    start = end + 1;
  }
  flush();
  return children;
}

/** The cells of a line as {label, start, end}; null when it has no labels. */
function readCells(line, offset) {
  let at = 0;
  const cells = [];
  for (const part of line.split(" | ")) {
    const colon = part.indexOf(": ");
    if (colon < 1) return null;
    cells.push({ label: part.slice(0, colon), start: offset + at, value: offset + at + colon + 2, end: offset + at + part.length });
    at += part.length + 3;
  }
  return cells;
}

function makeTable(rows, context) {
  const labels = rows[0].map(({ label }) => label);
  const head = el("tr", {}, ...labels.map((label) => el("th", { scope: "col" }, label)));
  const body = rows.map((cells) => {
    const isCited = (cell) => context.ranges.some(({ start, end }) => start < cell.end && end > cell.start);
    const cited = cells.filter(isCited);
    const row = labels.map((label) => {
      const cell = cells.find((one) => one.label === label);
      const element = el("td", { className: cited.length === 1 && cell === cited[0] ? "is-cited" : "" });
      if (cell) appendText(element, cell.value, cell.end, context);
      return element;
    });
    return el("tr", { className: cited.length ? "is-cited" : "" }, ...row);
  });
  return el("div", { className: "table-scroll", tabIndex: 0 }, el("table", {}, el("thead", {}, head), el("tbody", {}, ...body)));
}
