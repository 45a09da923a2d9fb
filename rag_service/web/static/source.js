// What a citation rests on: the original with the quote marked where there is a view of it, else its text.

import { download } from "./api.js";
import { announce, el, icon } from "./dom.js";
import { t } from "./i18n.js";
import { extensionOf } from "./places.js";
import { namedOnly, showText } from "./source_text.js";
import { read, write } from "./storage.js";

const CHOICE = "rag_source_view"; // "text" when that was chosen last
const PAGES = new Set(["pdf", "png", "jpg", "jpeg"]); // no browser shows TIFF
const SLIDES = new Set(["pptx", "ppt", "odp"]);
const MAILS = new Set(["eml", "msg", "mbox"]);
const SHEETS = new Set(["xlsx", "xls", "csv", "tsv", "ods"]);

/**
 * Fill an element.
 *
 * @param {{citation: any, name: string, evidence: any}} source
 * @param signal aborted when another source takes the place
 */
export async function showSource(into, source, signal) {
  const { citation } = source;
  if (citation.quote === null || citation.quote === undefined) {
    into.replaceChildren(...namedOnly(citation, source.evidence));
    return;
  }
  const isGone = source.evidence.changeOf?.(citation) === "gone"; // nothing of it can be fetched
  const original = isGone ? null : originalOf(source);
  const area = el("div", { className: "source-view" });
  const show = async (view) => {
    const shown = el("div", {}, el("p", { className: "muted" }, t("panel_loading")));
    area.replaceChildren(shown); // one that comes late fills what is no longer there
    for (const one of tabs) one.setAttribute("aria-pressed", String(one.dataset.view === view));
    try {
      if (view === "original") await (await original.load()).showOriginal(shown, source);
      else await showText(shown, source, signal);
    } catch (error) {
      if (signal.aborted) return;
      if (view === "text") throw error;
      console.info("original not shown", error);
      await show("text");
      if (error.code !== "not_found") area.prepend(el("p", { className: "muted" }, t("original_failed"))); // else its text says that it is gone
    }
  };
  const choose = (view) => () => {
    write(CHOICE, view);
    show(view);
  };
  const tabs = (original ? ["original", "text"] : []).map((view) =>
    el("button", { type: "button", className: "quiet", "data-view": view, onclick: choose(view) }, t(view === "text" ? "view_text" : original.label)),
  );
  into.replaceChildren(
    el("div", { className: "source-bar" }, tabs.length ? el("div", { role: "group", className: "tabs", "aria-label": t("panel_view") }, ...tabs) : null, isGone ? null : saveButton(source)),
    area,
  );
  await show(original && read(CHOICE) !== "text" ? "original" : "text");
}

/** The view of a citation's original: {label, load}; null where there is only the text. */
function originalOf({ citation: { location, chunkId, isWhole }, name }) {
  const kind = extensionOf(name);
  const inParts = { load: () => import("./sections.js") };
  if (SLIDES.has(kind) && (chunkId || isWhole)) return { label: "view_slides", ...inParts };
  if (MAILS.has(kind) && (chunkId || isWhole)) return { label: "view_mail", ...inParts };
  if (SHEETS.has(kind) && isWhole) return { label: "view_sheet", ...inParts };
  if (!location || location.part) return null; // a member of an archive
  if (PAGES.has(kind) && location.page !== null) return { label: "view_page", load: () => import("./pdf_page.js") };
  if (SHEETS.has(kind) && location.cell && chunkId) return { label: "view_sheet", load: () => import("./sheet_grid.js") };
  return null;
}

function saveButton({ citation, name }) {
  const words = el("span", {}, t("download_original"));
  const save = async () => {
    try {
      await download(`/documents/${encodeURIComponent(citation.documentId)}/original`, name);
    } catch (error) {
      if (!error.problem) throw error;
      words.textContent = t(error.code === "not_found" ? "original_gone" : "error_network");
      announce(words.textContent);
    }
  };
  return el("button", { type: "button", className: "quiet", onclick: save }, icon("download"), words);
}
