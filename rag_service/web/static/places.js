// Where a quote stands, in the words of the page's language; the API's `place` is always English.

import { knows, t, upright } from "./i18n.js";

const ICONS = {
  pdf: "pdf",
  xlsx: "sheet",
  xls: "sheet",
  csv: "sheet",
  tsv: "sheet",
  ods: "sheet",
  docx: "word",
  odt: "word",
  rtf: "word",
  doc: "word",
  md: "markdown",
  markdown: "markdown",
};

export const extensionOf = (name) => /\.([a-z0-9]{1,8})$/i.exec(name ?? "")?.[1].toLowerCase() ?? "";

export const iconOf = (name) => ICONS[extensionOf(name)] ?? "text";

/** "3", or "3–4" of what runs over a page break. Answers kept from before name the first page only. */
const pagesOf = ({ page, lastPage }) => (lastPage ? `${page}–${lastPage}` : String(page));

/** A part of a document, "notes" or "footnote 3", in words; names of attached files stay as they are. */
export function partWords(part) {
  const [, kind, number] = /^(.+?)( \d+)?$/s.exec(part) ?? [part, part];
  const key = `part_${kind.replaceAll(" ", "_")}`;
  return knows(key) ? t(key) + (number ?? "") : upright(part);
}

/** The same within a sentence; what lies in an attached file stands behind its name. */
const partIn = (part) =>
  part.split(" > ").map((one) => (partWords(one) === upright(one) ? one : partWords(one).replace(/^./u, (first) => first.toLowerCase()))).join(" > ");

/** As short as a badge needs: "Stocks!C12", "p. 3", "Requirements". Empty when the whole document is meant. */
export function shortPlace(location) {
  if (!location) return "";
  const { page, sheet, cell, row, headings, paragraph, slide = null, part, path, time } = location;
  if (slide !== null) return t("place_slide", { value: String(slide) });
  if (part || path || time) return part ? partIn(part) : path ?? time;
  if (sheet && cell) return `${sheet}!${cell}`;
  if (page !== null) return t("place_page_short", { value: pagesOf(location) });
  if (cell ?? sheet) return cell ?? sheet;
  if (headings.length) return headings.at(-1);
  if (row !== null) return t("place_row", { value: String(row) });
  return paragraph === null ? "" : t("place_paragraph", { value: String(paragraph) });
}

/** Every part of a place, from the widest to the narrowest: "sheet Stocks, cell C12". */
export function fullPlace(location) {
  if (!location) return "";
  const { page, sheet, cell, row, headings, paragraph, slide = null, part, path, time } = location;
  const parts = [
    part && partIn(part),
    slide !== null && t("place_slide", { value: String(slide) }),
    page !== null && t("place_page", { value: pagesOf(location) }),
    sheet && t("place_sheet", { value: sheet }),
    headings.length > 0 && t("place_section", { value: headings.join(" › ") }),
    cell && t(cell.includes(":") ? "place_cells" : "place_cell", { value: cell }),
    !cell && row !== null && paragraph === null && t("place_row", { value: String(row) }),
    !cell && row !== null && paragraph !== null && t("place_table_row", { row: String(row), value: String(paragraph) }),
    row === null && paragraph !== null && t("place_paragraph", { value: String(paragraph) }),
    path,
    time && t("place_time", { value: time }),
  ];
  return upright(parts.filter(Boolean).join(", "));
}

/**
 * File and place of a passage. Answers kept from before have no location: then the API's own English.
 *
 * @param {{fileName?: string, title?: string, location?: any, place?: string}} passage
 */
export function sourcePlace({ fileName, title, location, place }) {
  return location === undefined ? place : upright([fileName ?? title, fullPlace(location)].filter(Boolean).join(", "));
}
