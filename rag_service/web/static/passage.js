// The text around a quote as its reader knows it: rows as tables, Markdown as it looks, and everything else line by
// line. The quote is highlighted at its offsets, whatever the text looks like.

import { el } from "./dom.js";
import { parseBlocks, readLabelled, readLines } from "./markdown.js";
import { extensionOf } from "./places.js";
import { appendText, renderBlock } from "./render.js";

const WRAPPED = 60; // characters; a shorter line of a PDF ends where its author ended it
const MARKDOWN = new Set(["md", "markdown"]);

/**
 * @param text the piece of the document
 * @param {{start: number, end: number} | null} quote in `text`; null: there is none
 * @param fileName tells how to show it
 */
export function renderPassage(text, quote, fileName) {
  const ranges = quote ? [{ ...quote, wrap: () => el("mark") }] : [];
  const context = { source: text, ranges, badge: null, isPassage: true, told: new Set() };
  const kind = extensionOf(fileName);
  const element = el("div", { className: "passage-text" });
  if (MARKDOWN.has(kind)) {
    element.append(...parseBlocks(text).map((block) => renderBlock(block, context)));
    if (!quote || element.querySelector("mark")) return element;
  }
  element.replaceChildren(...lines({ ...context, told: new Set() }, kind === "pdf"));
  return element;
}

/** Rows as tables, other text line by line. A PDF breaks its lines at the width of its page: such breaks are let go. */
function lines(context, isWrapped) {
  const children = [];
  const all = readLines(context.source);
  let plain = null;
  for (let at = 0; at < all.length; ) {
    const table = readLabelled(all, at);
    if (table) {
      children.push(renderBlock({ type: "table", ...table }, context));
      plain = null;
      at = table.next;
      continue;
    }
    const { text, start, end } = all[at];
    if (!plain) children.push((plain = el("p", { className: "plain" })));
    appendText(plain, start, end, context);
    const goesOn = isWrapped && text.length > WRAPPED && context.source[end + 1] !== "\n";
    plain.append(goesOn ? " " : "\n");
    at += 1;
  }
  return children.filter((child) => child.textContent.trim());
}
