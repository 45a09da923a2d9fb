// Blocks of Markdown as elements. What a mark becomes, and which ranges are wrapped, the caller says.

import { el } from "./dom.js";
import { parseInline, readNumbers } from "./markdown.js";

/**
 * @typedef {object} Context
 * @property {string} source the whole text
 * @property {{start: number, end: number, wrap: (isFirst: boolean) => HTMLElement}[]} ranges parts to wrap
 * @property {boolean} [isPassage] rows and cells in the ranges stand out
 * @property {((number: number, at: number) => Node) | null} badge what a mark becomes; null leaves it as text
 */

const FIGURE = /^[-+−–(]?\s?[€$£¥]?\s?\d[\d\s.,'’\u00a0\u202f]*\)?\s?(?:[%€$£¥‰°]|[A-Z]{3})?$/;
const STOP = /^[.,;:!?…)\]»”]+/;

/** The element of one block. */
export function renderBlock(block, givenContext) {
  const context = { ...givenContext, told: new Set() };
  const inline = (tag, { start, end }) => {
    const element = el(tag);
    renderTokens(element, parseInline(context.source, start, end), context);
    return element;
  };
  switch (block.type) {
    case "heading": // below the question's own heading, whatever the answer chose
      return inline(`h${Math.min(6, block.level + 2)}`, block);
    case "rule":
      return el("hr");
    case "code": {
      const code = el("code");
      appendText(code, block.start, block.end, context);
      return el("pre", { tabIndex: 0 }, code);
    }
    case "quote":
      return el("blockquote", {}, ...block.lines.map((line) => inline("p", line)));
    case "list":
      return renderList(block.items, inline);
    case "table":
      return renderTable(block, context);
    default:
      return inline("p", block);
  }
}

/** A table: figures to the right; its marks below it, where they are in sight, unless rows have marks of their own. */
function renderTable({ head, rows, marks = [] }, context) {
  const fill = (element, ranges) => {
    for (const { start, end } of ranges.filter(Boolean)) {
      if (element.hasChildNodes()) element.append(" ");
      renderTokens(element, parseInline(context.source, start, end), context);
    }
    return element;
  };
  const isFigure = (cell) => !cell || isNumber(context.source.slice(cell.start, cell.end));
  const width = Math.max(...rows.map(({ length }) => length));
  const figures = [...Array(width).keys()].map((column) => rows.some((row) => row[column]) && rows.every((row) => isFigure(row[column])));
  const isCited = (cell) => cell && context.isPassage && context.ranges.some(({ start, end }) => start < cell.end && end > cell.start);
  const beside = marks.slice(0, -1).some(Boolean); // else they are those of the whole
  const body = rows.map((cells, i) => {
    const cited = cells.filter(isCited);
    const columns = cells.map((cell, column) =>
      fill(el("td", { className: classes(figures[column] && "is-figure", cited.length === 1 && cell === cited[0] && "is-cited") }), cell ? [cell, ...(cell.more ?? [])] : []),
    );
    return el("tr", { className: classes(cited.length && "is-cited") }, ...columns, beside ? fill(el("td"), [marks[i]]) : null);
  });
  const names = head?.map((cell, column) => fill(el("th", { scope: "col", className: classes(figures[column] && "is-figure") }), [cell, ...(cell.more ?? [])]));
  if (names && beside) names.push(el("td"));
  const table = el("table", {}, names ? el("thead", {}, el("tr", {}, ...names)) : null, el("tbody", {}, ...body));
  const scroll = el("div", { className: "table-scroll", tabIndex: 0 }, table);
  return !beside && marks.at(-1) ? el("div", {}, scroll, fill(el("p"), [marks.at(-1)])) : scroll;
}

/** Whether a cell holds a figure, or nothing: it stands to the right. */
export const isNumber = (text) => !text.trim() || FIGURE.test(text.trim());

const classes = (...names) => names.filter(Boolean).join(" ") || null;

function renderList(items, inline) {
  const root = newList(items[0]);
  const open = [{ list: root, indent: items[0].indent }];
  for (const item of items) {
    while (open.length > 1 && item.indent < open.at(-1).indent) open.pop();
    if (item.indent > open.at(-1).indent + 1 && open.at(-1).list.lastElementChild) {
      const list = newList(item);
      open.at(-1).list.lastElementChild.append(list);
      open.push({ list, indent: item.indent });
    }
    open.at(-1).list.append(inline("li", item));
  }
  return root;
}

const newList = (item) => (item.number === null ? el("ul") : el("ol", { start: item.number }));

function renderTokens(parent, given, context) {
  for (const token of context.badge ? stopsFirst(given, context.source) : given) {
    if (token.type === "text") appendText(parent, token.start, token.end, context);
    else if (token.type === "mark") renderMark(parent, token, context);
    else if (token.type === "link") {
      // Only the words of a link: an answer must not lead anybody anywhere.
      appendText(parent, token.start, token.end, context);
      parent.append(el("span", { className: "url" }, ` (${token.url})`));
    } else {
      const element = el(token.type);
      if (token.children) renderTokens(element, token.children, context);
      else appendText(element, token.start, token.end, context);
      parent.append(element);
    }
  }
}

function renderMark(parent, { start, end }, context) {
  if (context.badge) parent.append(...readNumbers(context.source.slice(start, end)).map((number) => context.badge(number, start)));
  else appendText(parent, start, end, context);
}

/** Tokens in which the full stop after marks stands before them, beside its word. */
function stopsFirst(tokens, source) {
  const moved = [...tokens];
  for (let at = moved.length - 1; at > 0; at -= 1) {
    const after = moved[at];
    const [stop] = (after.type === "text" && moved[at - 1].type === "mark" && STOP.exec(source.slice(after.start, after.end))) || [];
    if (!stop) continue;
    let first = at - 1;
    while (moved[first - 1]?.type === "mark") first -= 1;
    const before = moved[first - 1];
    const end = before?.type === "text" ? before.start + source.slice(before.start, before.end).trimEnd().length : 0;
    if (end) moved[first - 1] = { ...before, end };
    moved[at] = { ...after, start: after.start + stop.length };
    moved.splice(first, 0, { type: "text", start: after.start, end: after.start + stop.length });
  }
  return moved;
}

/** Append source[from, to) as text, parts of it wrapped where the context's ranges say so. */
const wrapped = new WeakMap(); // element → the range that it wraps a part of

export function appendText(parent, from, to, context) {
  let at = from;
  for (const range of context.ranges) {
    if (range.end <= at || range.start >= to) continue;
    const start = Math.max(at, range.start);
    const end = Math.min(to, range.end);
    if (start > at) parent.append(context.source.slice(at, start));
    const before = parent.lastChild;
    const wrapper = before && wrapped.get(before) === range ? before : range.wrap(!context.told.has(range)); // goes on
    wrapped.set(wrapper, range);
    context.told.add(range);
    const words = context.source.slice(start, end);
    wrapper.append(words.trimEnd()); // a line under the blank before a badge looks like a mistake
    if (wrapper !== before) parent.append(wrapper);
    const blank = words.slice(words.trimEnd().length);
    if (blank) parent.append(blank);
    at = end;
  }
  if (at < to) parent.append(context.source.slice(at, to));
}
