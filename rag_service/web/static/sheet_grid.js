// The rows of a sheet around a quote, as a spreadsheet shows them: letters above, numbers beside, the cited cells marked.

import { read } from "./api.js";
import { el } from "./dom.js";
import { offsetMap } from "./evidence.js";
import { t } from "./i18n.js";

const ADDRESS = /^([A-Z]{1,3})(\d{1,7})$/;
const LABEL = /(?:^|[\n|]\s?)([^\n|]{1,200}): $/;

/** Show the cells of a citation and those around them. Throws when there are none. */
export async function showOriginal(into, { citation }) {
  const index = Number(/:(\d+)$/.exec(citation.chunkId)?.[1]);
  const sheet = citation.location.sheet;
  const load = async (from, to) => {
    const { items, total } = await read(`/documents/${encodeURIComponent(citation.documentId)}/chunks`, { offset: from, limit: to - from });
    const cells = new Map(items.flatMap((chunk) => cellsOf(chunk, sheet, citation)));
    if (![...cells.values()].some(({ isQuoted }) => isQuoted)) throw new Error("another version");
    const more = (key, action) => el("button", { type: "button", className: "quiet", onclick: action }, t(key));
    into.replaceChildren(
      ...[
        from > 0 ? more("panel_earlier", () => load(Math.max(0, from - 3), to)) : null,
        makeGrid([...cells.values()], citation.location.cell),
        to < total ? more("panel_later", () => load(from, to + 3)) : null,
      ].filter(Boolean),
    );
    into.querySelector(".is-cited, .is-quoted").scrollIntoView({ block: "center", inline: "nearest" });
  };
  await load(Math.max(0, index - 1), index + 2);
}

/** The cells of a chunk by their addresses. */
function cellsOf(chunk, sheet, citation) {
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

function makeGrid(cells, cited) {
  const columns = [...new Set(cells.map(({ column }) => column))].sort((a, b) => a.length - b.length || (a < b ? -1 : 1));
  const rows = new Map();
  for (const cell of cells) rows.set(cell.row, [...(rows.get(cell.row) ?? []), cell]);
  const labels = columns.map((column) => cells.find((cell) => cell.column === column && cell.label)?.label ?? "");
  const head = (values, corner) => el("tr", {}, corner, ...values.map((value) => el("th", { scope: "col" }, value)));
  const body = [...rows].sort(([a], [b]) => a - b).map(([number, inside]) =>
    el(
      "tr",
      { className: inside.some(({ isQuoted }) => isQuoted) ? "is-quoted" : "" },
      el("th", { scope: "row" }, String(number)),
      ...columns.map((column) => {
        const cell = inside.find((one) => one.column === column);
        return el("td", { className: `${column}${number}` === cited ? "is-cited" : "" }, cell?.isQuoted ? el("mark", {}, cell.text) : (cell?.text ?? ""));
      }),
    ),
  );
  const table = el(
    "table",
    { className: "grid" },
    el("thead", {}, head(columns, el("td")), labels.some(Boolean) ? head(labels, el("td")) : null),
    el("tbody", {}, ...body),
  );
  return el("div", { className: "table-scroll", tabIndex: 0, role: "region", "aria-label": t("view_sheet") }, table);
}
