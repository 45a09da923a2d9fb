// Text into the clipboard.

import { el } from "./dom.js";

/** Whether it worked. Browsers offer the clipboard on https and localhost only; elsewhere the old way. */
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = el("textarea", { className: "sr-only", value: text });
    const focused = /** @type {HTMLElement} */ (document.activeElement);
    (document.querySelector("dialog:modal") ?? document.body).append(area); // below a modal nothing can be selected
    area.select();
    const copied = document.execCommand("copy");
    area.remove();
    focused?.focus();
    return copied;
  }
}
