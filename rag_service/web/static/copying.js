// An answer as plain text, with its sources below, and into the clipboard.

import { el } from "./dom.js";
import { t } from "./i18n.js";
import { fullPlace } from "./places.js";
import { proofWords } from "./proof.js";

/** The answer with its marks, then one line for each place that was cited. */
export function plainText(text, evidence) {
  const lines = new Map();
  for (const citation of evidence.citations) {
    const name = evidence.nameOf(citation);
    if (!citation.documentId || !name) continue;
    const line = [name, fullPlace(citation.location)].filter(Boolean).join(", ");
    lines.set(`[C${citation.mark}] ${line} (${proofWords(citation)})`, true);
  }
  return lines.size ? `${text.trim()}\n\n${t("sources")}:\n${[...lines.keys()].join("\n")}\n` : text;
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
