// One tooltip for all badges: on hover and on focus, it can be pointed at, and Escape hides it (WCAG 1.4.13).

import { byId } from "./dom.js";

const DELAY = 150; // milliseconds; passing over a line of badges must not flicker
const WAY = 600; // milliseconds; the pointer may cross from a badge to what stands beside the text
const NARROWEST = 224; // pixels that a tooltip needs beside the text
const GAP = 8; // pixels to the badge and to the edges of the window
const tooltip = byId("tooltip");
let owner = null;
let follow = null; // what is told when it is shown and hidden
let timer = 0;
let isQuiet = false; // focus is given back, and nothing is asked

/**
 * @param content makes the tooltip's elements when it is shown
 * @param onToggle called with true and false when it is shown and hidden; returns what else it shows below the target
 */
export function attachTooltip(target, content, onToggle = () => null) {
  const soon = (action) => {
    clearTimeout(timer);
    timer = setTimeout(action, DELAY);
  };
  // Not where the page has moved below a pointer at rest: nobody asks, and what was to be clicked would be covered.
  target.addEventListener("pointermove", (event) => {
    if (event.pointerType !== "touch" && owner !== target) soon(() => show(target, content, onToggle));
  });
  target.addEventListener("pointerleave", () => {
    clearTimeout(timer);
    timer = setTimeout(hide, WAY);
  });
  target.addEventListener("focus", () => {
    if (!isQuiet && target.matches(":focus-visible")) show(target, content, onToggle);
  });
  target.addEventListener("blur", hide);
  target.addEventListener("click", hide);
}

function show(target, content, onToggle) {
  if (!target.isConnected) return;
  hide();
  owner = target;
  follow = onToggle;
  tooltip.replaceChildren(...content().filter(Boolean));
  tooltip.hidden = false;
  const line = follow(true);
  target.setAttribute("aria-describedby", tooltip.id);
  const badge = target.getClientRects()[0] ?? target.getBoundingClientRect();
  const { clientWidth: width, clientHeight: height } = document.documentElement;
  const end = target.closest(".column")?.getBoundingClientRect().right ?? width;
  const room = (byId("panel").open ? byId("panel").getBoundingClientRect().left : width) - end - 3 * GAP;
  tooltip.style.maxWidth = room < NARROWEST ? "" : `${Math.min(room, 384)}px`;
  const box = tooltip.getBoundingClientRect();
  const top = document.querySelector(".top").getBoundingClientRect().bottom;
  if (room < NARROWEST) {
    const above = badge.top - box.height - GAP;
    tooltip.style.left = `${Math.max(GAP, Math.min(badge.left, width - box.width - GAP))}px`;
    tooltip.style.top = `${above > top ? above : (line?.getBoundingClientRect() ?? badge).bottom + GAP}px`;
  } else {
    tooltip.style.left = `${end + GAP}px`; // beside the text, which it must not cover
    tooltip.style.top = `${Math.max(top + GAP, Math.min(badge.top, height - box.height - GAP))}px`;
  }
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
  follow?.(false);
  follow = null;
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
