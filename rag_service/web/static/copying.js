// An answer as plain text, with its sources below, and into the clipboard.

import { el } from "./dom.js";
import { t } from "./i18n.js";
import { fullPlace } from "./places.js";
import { differenceOf, proofWords } from "./proof.js";

/** The answer with its verdict and marks, then one line for each place that was cited, and for what no source says. */
export function plainText(text, evidence, verdict = "") {
  const lines = evidence.citations.map((citation) => {
    const where = [evidence.nameOf(citation), fullPlace(citation.location)].filter(Boolean).join(", ");
    return `[C${citation.mark}]${where ? ` ${where}` : ""} (${[proofWords(citation), differenceOf(citation)].filter(Boolean).join(": ")})`;
  });
  const parts = [text.trim(), verdict, lines.length ? `${t("sources")}:\n${[...new Set(lines)].join("\n")}` : ""];
  return `${parts.filter(Boolean).join("\n\n")}\n`;
}

/** Whether it worked. Browsers offer the clipboard on https and localhost only; elsewhere the old way. */
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = el("textarea", { className: "sr-only", value: text });
    const focused = document.activeElement;
    (document.querySelector("dialog:modal") ?? document.body).append(area); // below a modal nothing can be selected
    area.select();
    const copied = document.execCommand("copy");
    area.remove();
    focused?.focus();
    return copied;
  }
}
