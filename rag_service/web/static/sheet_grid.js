// The rows of a sheet around a quote, as a spreadsheet shows them: letters above, numbers beside, the cited cells marked.

import { read } from "./api.js";
import { el } from "./dom.js";
import { offsetMap } from "./evidence.js";
import { t } from "./i18n.js";
import { isNumber } from "./render.js";

const MOST_CHUNKS = 50; // of a table whose rows a figure was computed from
const RANGE = /\$?\b([A-Z]{1,3})\$?(\d{1,7})(?::\$?([A-Z]{1,3})\$?(\d{1,7}))?\b/g;
const ADDRESS = /^([A-Z]{1,3})(\d{1,7})$/;
const LABEL = /(?:^|[\n|]\s?)([^\n|]{1,200}): $/;

/** Show the cells of a citation and those around them. Throws when there are none. */
export async function showOriginal(into, { citation }) {
  const index = Number(/:(\d+)$/.exec(citation.chunkId)?.[1]);
  const { sheet, cell } = citation.location;
  const used = cellsIn(citation.formula ?? "");
  const isMarked = used.length ? (one) => used.some((range) => isWithin(one, range)) : isQuotedCell;
  const load = async (from, to, isWhole) => {
    const { items, total } = await read(`/documents/${encodeURIComponent(citation.documentId)}/chunks`, { offset: from, limit: to - from });
    const parts = items.map((chunk) => readCells(chunk, sheet, citation));
    const cells = [...new Map(parts.flat()).values()];
    if (!cells.some(({ isQuoted }) => isQuoted)) throw new Error("another version");
    const more = (key, ...range) => el("button", { type: "button", className: "quiet", onclick: () => load(...range) }, t(key));
    const rows = new Set(cells.filter(isMarked).map(({ row }) => row));
    const isSmall = rows.size > 1 && used.length > 0 && !isWhole; // what a figure was computed from, and nothing else
    into.replaceChildren(
      ...[
        isSmall && rows.size < new Set(cells.map(({ row }) => row)).size ? more("all_rows", from, to, true) : null,
        !isSmall && from > 0 && parts[0].length ? more("panel_earlier", Math.max(0, from - 3), to, true) : null,
        makeGrid(isSmall ? cells.filter(({ row }) => rows.has(row)) : cells, { isMarked, cited: cell, result: resultOf(citation.formula, used) }),
        !isSmall && to < total && parts.at(-1).length ? more("panel_later", from, to + 3, true) : null,
      ].filter(Boolean),
    );
    const marked = into.querySelector(".is-quoted .is-cited") ?? into.querySelector("mark"); // a cell: its column may lie to the right
    marked.scrollIntoView({ block: "center", inline: "nearest" });
  };
  await load(Math.max(0, index - 1), index + (used.length ? MOST_CHUNKS : 2), false);
}

/** The ranges of cells that a formula names: "SUM(F2,F43:F45)". */
const cellsIn = (formula) =>
  [...formula.matchAll(RANGE)].map(([, left, top, right = left, bottom = top]) => ({ left: numberOf(left), top: Number(top), right: numberOf(right), bottom: Number(bottom) }));

const isWithin = ({ column, row }, { left, top, right, bottom }) => {
  const place = numberOf(column);
  return left <= place && place <= right && top <= row && row <= bottom;
};

const numberOf = (letters) => [...letters].reduce((sum, letter) => sum * 26 + letter.charCodeAt(0) - 64, 0);

/** What a formula over cells of one column comes to: {column, text}; null for others. */
function resultOf(formula, used) {
  const [, text] = /^[A-Z]+\([^()]*\) = ([^=]+)$/.exec(formula ?? "") ?? [];
  return text && used.every(({ left, right }) => left === right && left === used[0].left) ? { column: used[0].left, text } : null;
}

/** The cells of a chunk by their addresses. */
export function readCells(chunk, sheet, citation) {
  const offset = offsetMap(chunk.text);
  return chunk.spans.flatMap(({ start, end, location }) => {
    const [, column, row] = (location?.sheet === sheet && ADDRESS.exec(location.cell ?? "")) || [];
    if (!row) return [];
    const from = offset(Math.max(0, start - chunk.start));
    const text = chunk.text.slice(from, offset(end - chunk.start));
    const label = LABEL.exec(chunk.text.slice(Math.max(0, from - 203), from))?.[1] ?? "";
    return [[location.cell, { column, row: Number(row), text, label, isQuoted: start < citation.end && end > citation.start }]];
  });
}

const isQuotedCell = ({ isQuoted }) => isQuoted;

/**
 * A grid of cells; by default, the quoted ones are marked.
 * @param {any[]} cells
 * @param {{isMarked?: (cell: any) => boolean, cited?: any, result?: any}} options
 */
export function makeGrid(cells, { isMarked = isQuotedCell, cited, result } = {}) {
  const columns = [...new Set(cells.map(({ column }) => column))].sort((a, b) => numberOf(a) - numberOf(b));
  const rows = cells.reduce((all, cell) => all.set(cell.row, [...(all.get(cell.row) ?? []), cell]), new Map());
  const figures = new Set(columns.filter((column) => cells.every((cell) => cell.column !== column || isNumber(cell.text))));
  const align = (column) => (figures.has(column) ? "is-figure" : "");
  const labels = columns.map((column) => cells.find((cell) => cell.column === column && cell.label)?.label ?? "");
  const head = (values, corner) => el("tr", {}, corner, ...values.map((value, at) => el("th", { scope: "col", className: align(columns[at]) }, value)));
  const body = [...rows].sort(([a], [b]) => a - b).map(([number, inside]) =>
    el(
      "tr",
      { className: inside.some(isMarked) ? "is-quoted" : "" },
      el("th", { scope: "row" }, String(number)),
      ...columns.map((column) => {
        const cell = inside.find((one) => one.column === column);
        const isOutlined = `${column}${number}` === cited || (cell && result && isMarked(cell));
        return el("td", { className: `${align(column)} ${isOutlined ? "is-cited" : ""}`.trim() }, cell && isMarked(cell) ? el("mark", {}, cell.text) : (cell?.text ?? ""));
      }),
    ),
  );
  const total = result && el("tfoot", {}, el("tr", {}, el("th", { scope: "row" }, "="), ...columns.map((column) => el("td", { className: align(column) }, numberOf(column) === result.column ? el("strong", {}, result.text) : ""))));
  const table = el(
    "table",
    { className: "grid" },
    el("thead", {}, head(columns, el("td")), labels.some(Boolean) ? head(labels, el("td")) : null),
    el("tbody", {}, ...body),
    total,
  );
  return el("div", { className: "table-scroll", tabIndex: 0, role: "region", "aria-label": t("view_sheet") }, table);
}
