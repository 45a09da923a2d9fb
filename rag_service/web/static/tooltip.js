// One tooltip for all badges: on hover and on focus, it can be pointed at, and Escape hides it (WCAG 1.4.13).

import { byId } from "./dom.js";

const DELAY = 150; // milliseconds; passing over a line of badges must not flicker
const GAP = 8; // pixels to the badge and to the edges of the window
const tooltip = byId("tooltip");
let owner = null;
let timer = 0;
let isQuiet = false; // focus is given back, and nothing is asked

/** @param content makes the tooltip's elements when it is shown */
export function attachTooltip(target, content) {
  const soon = (action) => {
    clearTimeout(timer);
    timer = setTimeout(action, DELAY);
  };
  target.addEventListener("pointerenter", (event) => {
    if (event.pointerType !== "touch") soon(() => show(target, content));
  });
  target.addEventListener("pointerleave", () => soon(hide));
  target.addEventListener("focus", () => {
    if (!isQuiet && target.matches(":focus-visible")) show(target, content);
  });
  target.addEventListener("blur", hide);
  target.addEventListener("click", hide);
}

function show(target, content) {
  if (!target.isConnected) return;
  hide();
  owner = target;
  tooltip.replaceChildren(...content().filter(Boolean));
  tooltip.hidden = false;
  target.setAttribute("aria-describedby", tooltip.id);
  const badge = target.getClientRects()[0] ?? target.getBoundingClientRect();
  const box = tooltip.getBoundingClientRect();
  const left = Math.min(Math.max(GAP, badge.left), document.documentElement.clientWidth - box.width - GAP);
  const above = badge.top - box.height - GAP;
  const top = document.querySelector(".top").getBoundingClientRect().bottom;
  tooltip.style.left = `${Math.max(GAP, left)}px`;
  tooltip.style.top = `${above > top ? above : badge.bottom + GAP}px`;
}

/** Do what gives focus back to an element, without its tooltip. */
export function quietly(action) {
  isQuiet = true;
  action();
  isQuiet = false;
}

export function hide() {
  clearTimeout(timer);
  owner?.removeAttribute("aria-describedby");
  owner = null;
  tooltip.hidden = true;
}

tooltip.addEventListener("pointerenter", () => clearTimeout(timer));
tooltip.addEventListener("pointerleave", hide);
addEventListener("scroll", hide, { passive: true, capture: true });
document.addEventListener(
  "keydown",
  (event) => {
    if (event.key !== "Escape" || tooltip.hidden) return;
    hide();
    event.stopPropagation(); // the first Escape closes the tooltip, the next the panel
  },
  { capture: true },
);
