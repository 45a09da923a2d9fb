// Builds elements. Text becomes text nodes only, so nothing that a document or an answer holds can be markup.

const SVG = "http://www.w3.org/2000/svg";

/**
 * An element. Known properties are set, `class`, `data-…` and `aria-…` become attributes, `on…` listeners.
 *
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Record<string, any>} properties
 * @param {(Node | string | null | undefined)[]} children
 */
export function el(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name in element && !name.includes("-")) element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** One of the drawings in icons.svg; decoration, so hidden from screen readers. */
export function icon(name, extra = "") {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("class", `icon ${extra}`.trim());
  svg.setAttribute("aria-hidden", "true");
  const use = document.createElementNS(SVG, "use");
  use.setAttribute("href", `#i-${name}`);
  svg.append(use);
  return svg;
}

/** Text for screen readers alone. */
export const hidden = (text) => el("span", { className: "sr-only" }, text);

/** Say something to screen readers. Set, not appended: only the newest state is of interest. */
export function announce(text) {
  document.getElementById("status").textContent = text;
}

const READ = 5000; // milliseconds for one sentence
let timer = 0;

/** Say to everyone what has come of an action that leaves no trace on the page. */
export function tell(text) {
  announce(text);
  const toast = byId("toast");
  toast.textContent = text;
  toast.togglePopover?.(true); // above dialogs, too
  clearTimeout(timer);
  timer = setTimeout(() => toast.togglePopover?.(false), READ);
}

/**
 * @template {string} Id
 * @param {Id} id
 * @returns {Id extends keyof PageElements ? PageElements[Id] : HTMLElement}
 */
export const byId = (id) => /** @type {any} */ (document.getElementById(id));

/** Whether what an event came from is, or lies in, an element that a selector names. */
export const isWithin = (target, selector) => target instanceof Element && target.closest(selector) !== null;

/** Give an element the focus where what had it is gone. */
export function catchFocus(element) {
  if (document.activeElement === document.body || !document.activeElement) element.focus({ preventScroll: true });
}
