// The parts of the page (`section[data-view]`), chosen by the address behind "#", so that Back works and the
// conversation stays. A further part needs a section and a link with `data-to`; what stands behind a slash
// ("#manage/keys") is the part's own affair.

import { byId } from "./dom.js";
import { hide } from "./tooltip.js";

/**
 * @param onLeave called when another part is shown
 * @param onShow called with (section, what stands behind the slash)
 */
export function startViews({ onLeave, onShow }) {
  const sections = [.../** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[data-view]"))];
  const find = (name) => sections.find((section) => section.dataset.view === name);
  let shown = null;

  function show(moveFocus) {
    const [name, ...rest] = location.hash.slice(1).split("/");
    const section = find(name) ?? (name && shown ? shown : sections[0]); // "": Back, to where the visit began
    if (section === shown) {
      if (find(name)) onShow(section, rest.join("/"));
      return;
    }
    if (shown) onLeave();
    hide();
    shown = section;
    for (const one of sections) one.hidden = one !== section;
    for (const link of document.querySelectorAll("[data-to]")) {
      if (link.getAttribute("data-to") === section.dataset.view) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    document.title = section.dataset.title;
    onShow(section, rest.join("/"));
    if (!moveFocus) return;
    scrollTo(0, 0);
    // Where the reader goes on: the heading, or the question box once there is a conversation.
    (section.querySelector("h1:not(.sr-only)") ?? byId("question")).focus({ preventScroll: true });
  }

  // The language is changed by a reload, which must come back to the same part.
  for (const link of /** @type {NodeListOf<HTMLAnchorElement>} */ (document.querySelectorAll(".languages a"))) {
    link.addEventListener("click", () => (link.hash = location.hash));
  }
  document.querySelector(".skip-link").addEventListener("click", (event) => {
    event.preventDefault();
    (shown.querySelector("[data-start]:not([hidden])") ?? shown.querySelector("h1")).focus();
  });
  addEventListener("hashchange", () => {
    for (const dialog of /** @type {NodeListOf<HTMLDialogElement>} */ (document.querySelectorAll(".dialog[open]"))) dialog.close(); // it belongs to the part that is left
    show(true);
  });
  show(false);
}
