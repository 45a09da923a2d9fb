// Blocks of Markdown as elements. What a mark becomes, and which ranges are wrapped, the caller says.

import { el } from "./dom.js";
import { parseInline, readNumbers } from "./markdown.js";

/**
 * @typedef {object} Context
 * @property {string} source the whole text
 * @property {{start: number, end: number, wrap: (isFirst: boolean) => HTMLElement}[]} ranges parts to wrap
 * @property {((number: number, at: number) => Node) | null} badge what a mark becomes; null leaves it as text
 */

const MARKS_AT_END = /\s*(?:[[［【]\s?[Cc]\s?[0-9][^\]］】]{0,40}([\]］】])[\s.;]*)+$/;
const LABELLED = /^[^:|\n]{1,60}: [^|\n]*$/; // a cell with the label of its column
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
      return renderRow(block, context) ?? inline("p", block);
  }
}

function renderTable({ head, rows }, context) {
  const renderCell = (tag, cell) => {
    const element = el(tag, tag === "th" ? { scope: "col" } : {});
    renderTokens(element, parseInline(context.source, cell.start, cell.end), context);
    for (const { start, end } of cell.more ?? []) {
      element.append(" ");
      renderTokens(element, parseInline(context.source, start, end), context);
    }
    return element;
  };
  const body = rows.map((cells) => el("tr", {}, ...cells.map((cell) => renderCell("td", cell))));
  const columns = head?.map((cell) => renderCell("th", cell));
  const table = el("table", {}, columns ? el("thead", {}, el("tr", {}, ...columns)) : null, el("tbody", {}, ...body));
  return el("div", { className: "table-scroll", tabIndex: 0 }, table);
}

/**
 * A row of a sheet, "Product: bolt | Stock: 120", with its labels above the values, and its marks below, where they
 * are in sight however wide the row is; null for any other text.
 */
function renderRow({ start, end }, context) {
  const text = context.source.slice(start, end).trimEnd();
  const marks = MARKS_AT_END.exec(text);
  const parts = text.slice(0, marks?.index).split(" | ");
  if (parts.length < 2 || !parts.every((part) => LABELLED.test(part))) return null;
  let at = start;
  const cells = parts.map((part) => {
    const colon = part.indexOf(": ");
    const cell = { label: context.source.slice(at, at + colon), start: at + colon + 2, end: at + part.length };
    at += part.length + " | ".length;
    return cell;
  });
  const values = cells.map((cell) => {
    const element = el("td");
    renderTokens(element, parseInline(context.source, cell.start, cell.end), context);
    return element;
  });
  const head = el("tr", {}, ...cells.map(({ label }) => el("th", { scope: "col" }, label)));
  const table = el("table", {}, el("thead", {}, head), el("tbody", {}, el("tr", {}, ...values)));
  const below = el("p", {});
  if (marks) renderTokens(below, parseInline(context.source, start + marks.index, start + text.lastIndexOf(marks[1]) + 1), context);
  return el("div", { className: "sheet-row" }, el("div", { className: "table-scroll", tabIndex: 0 }, table), marks ? below : null);
}

function renderList(items, inline) {
  const root = newList(items[0]);
  const open = [{ list: root, indent: items[0].indent }];
  for (const item of items) {
    while (open.length > 1 && item.indent < open.at(-1).indent) open.pop();
    if (item.indent > open.at(-1).indent + 1 && open.at(-1).list.lastChild) {
      const list = newList(item);
      open.at(-1).list.lastChild.append(list);
      open.push({ list, indent: item.indent });
    }
    open.at(-1).list.append(inline("li", item));
  }
  return root;
}

const newList = (item) => (item.number === null ? el("ul") : el("ol", { start: item.number }));

function renderTokens(parent, tokens, context) {
  for (const [i, token] of tokens.entries()) {
    if (token.type === "text") appendText(parent, token.start, token.end, context);
    else if (token.type === "mark") renderMark(parent, token, tokens[i + 1], context);
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

function renderMark(parent, { start, end }, next, context) {
  if (!context.badge) {
    appendText(parent, start, end, context);
    return;
  }
  const badges = readNumbers(context.source.slice(start, end)).map((number) => context.badge(number, start));
  parent.append(...badges);
  const [stop] = next?.type === "text" ? STOP.exec(context.source.slice(next.start, next.end)) ?? [""] : [""];
  if (!stop) return;
  // A line may break after a badge, but the full stop must not stand alone on the next one.
  const kept = el("span", { className: "keep" }, badges.at(-1), stop);
  parent.append(kept);
  next.start += stop.length;
}

/** Append source[from, to) as text, parts of it wrapped where the context's ranges say so. */
export function appendText(parent, from, to, context) {
  let at = from;
  for (const range of context.ranges) {
    if (range.end <= at || range.start >= to) continue;
    const start = Math.max(at, range.start);
    const end = Math.min(to, range.end);
    if (start > at) parent.append(context.source.slice(at, start));
    const wrapper = range.wrap(!context.told.has(range));
    context.told.add(range);
    const words = context.source.slice(start, end);
    wrapper.append(words.trimEnd()); // a line under the blank before a badge looks like a mistake
    parent.append(wrapper, words.slice(words.trimEnd().length));
    at = end;
  }
  if (at < to) parent.append(context.source.slice(at, to));
}
