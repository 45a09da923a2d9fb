// A list as the API pages it: one slice at a time, however long the whole is.

import { announce, el, icon } from "./dom.js";
import { locale, t, upright, whole } from "./i18n.js";
import { Newest } from "./newest.js";
import { errorNotice } from "./notice.js";

const PER_PAGE = 50;

export class Listing {
  /**
   * @param label what the list is called
   * @param load fetches {items, total} of {offset, limit}; its second argument is the signal that nobody waits any more
   * @param row makes an `li` of an item
   * @param empty words for a list without items, or a function that gives them
   * @param onSelect called with the items that are ticked; null: rows cannot be ticked
   */
  constructor({ label, load, row, empty, onSelect = null }) {
    this._onSelect = onSelect;
    this._rows = []; // {item, told, element, box} of the slice in sight; no box where rows cannot be ticked
    this._load = load;
    this._row = row;
    this._empty = empty;
    this._offset = 0;
    this._newest = new Newest(); // only the newest slice may fill the list
    /** @type {Promise<void>} */
    this._shown = null; // of that one
    this._list = el("ul", { className: "rows", "aria-label": label });
    this._messages = el("div", {});
    this._count = el("p", { className: "muted pager-count", tabIndex: -1 });
    this._previous = this._step("previous", -PER_PAGE);
    this._next = this._step("next", PER_PAGE);
    this._pager = el("div", { className: "pager", hidden: true }, this._previous, this._count, this._next);
    this.element = el("div", { className: "listing" }, this._messages, this._list, this._pager);
  }

  _step(name, by) {
    const onclick = async () => {
      await this.show(this._offset + by);
      this.element.scrollIntoView({ block: "start" });
      this._count.focus({ preventScroll: true });
    };
    return el("button", { type: "button", className: "button", onclick }, icon("chevron", name === "previous" ? "turned" : ""), t(name));
  }

  /** Fetch the slice in sight anew. */
  refresh() {
    return this.show(this._offset);
  }

  /** Fetch and show the slice from `offset` on. Ends when the list is there; where it was fetched anew meanwhile, with that. */
  show(offset) {
    return (this._shown = this._fetch(offset));
  }

  async _fetch(offset) {
    const signal = this._newest.begin();
    this._offset = offset;
    this.element.setAttribute("aria-busy", "true");
    try {
      const { items, total } = await this._load({ offset, limit: PER_PAGE }, signal);
      if (signal.aborted) return await this._shown;
      if (!items.length && offset > 0 && total > 0) {
        await this.show(Math.max(0, Math.ceil(total / PER_PAGE - 1) * PER_PAGE)); // the last of a page was deleted
        return;
      }
      this._fill(items, total, offset);
    } catch (error) {
      if (signal.aborted) return await this._shown;
      if (!error.problem) throw error;
      this._messages.replaceChildren(errorNotice(error, this._again()));
    } finally {
      if (!signal.aborted) this.element.setAttribute("aria-busy", "false");
    }
  }

  _fill(items, total, offset) {
    const refocus = this._keepFocus();
    const ticked = new Set(this._selected().map(({ id }) => id));
    this._rows = items.map((item) => this._rowOf(item, ticked.has(item.id)));
    this._list.replaceChildren(...this._rows.map(({ element }) => element));
    refocus();
    this._onSelect?.(this._selected());
    this._messages.replaceChildren(...(total ? [] : [el("p", { className: "muted nothing" }, typeof this._empty === "function" ? this._empty() : this._empty)]));
    this._list.hidden = !total;
    this._pager.hidden = total <= PER_PAGE;
    this._previous.disabled = offset === 0;
    this._next.disabled = offset + items.length >= total;
    const range = t("range", { from: whole(offset + 1), to: whole(offset + items.length), total: whole(total) });
    if (this._count.textContent && this._count.textContent !== range) announce(range);
    this._count.textContent = range;
  }

  /** A list that is fetched anew keeps the focus: where it was in its row, by the row's item. */
  _keepFocus() {
    const row = this._rows.find(({ element }) => element.contains(document.activeElement));
    if (!row) return () => {};
    const place = focusable(row.element).indexOf(document.activeElement);
    return () => focusable(this._rows.find(({ item }) => item.id === row.item.id)?.element)[place]?.focus({ preventScroll: true });
  }

  /** The row in sight if nothing in it has changed: an open panel leads back to its button. Else a new one, which keeps its tick. */
  _rowOf(item, checked) {
    const element = this._row(item);
    const told = JSON.stringify(item) + element.outerHTML;
    const same = this._rows.find((row) => row.item.id === item.id && row.told === told);
    return same ?? { item, told, element, box: this._onSelect && this._boxOf(element, checked) };
  }

  _boxOf(element, checked) {
    const name = element.querySelector(".row-title bdi")?.textContent ?? "";
    const box = el("input", { type: "checkbox", checked, "aria-label": t("select_named", { name }), onchange: () => this._tell() });
    element.prepend(box);
    return box;
  }

  /** Tick all in sight, or none. */
  tickAll(isTicked) {
    for (const { box } of this._rows) box.checked = isTicked;
    this._tell();
  }

  _tell() {
    this._onSelect(this._selected());
  }

  _selected() {
    return this._rows.filter(({ box }) => box?.checked).map(({ item }) => item);
  }

  _again() {
    return el("button", { type: "button", className: "button", onclick: () => this.refresh() }, icon("retry"), t("try_again"));
  }
}

const focusable = (row) => [...(row?.querySelectorAll("a, button, input, summary") ?? [])];

/**
 * A row: what it is, a line about it, and what can be done with it.
 *
 * @param href where the name leads
 * @param open called with the name when it is activated, in place of `href`
 * @param actions of each {icon, label, onclick}; the label is shown to screen readers and on hover
 */
export function makeRow({ icon: drawing, title: name, href = null, open = null, state = null, about = [], more = null, actions = [] }) {
  const title = upright(name);
  return el(
    "li",
    { className: "row" },
    icon(drawing, "icon-file"),
    el(
      "div",
      { className: "row-body" },
      el("p", { className: "row-title" }, nameOf(title, { href, open }), state),
      el("p", { className: "muted row-about" }, upright(about.filter(Boolean).join(" · "))),
      more,
    ),
    el(
      "div",
      { className: "row-actions" },
      ...actions.filter(Boolean).map(({ icon: shape, label, onclick }) =>
        el("button", { type: "button", className: "icon-button", title: label, onclick }, icon(shape),
          el("span", { className: "sr-only" }, `${label}: ${title}`)),
      ),
    ),
  );
}

function nameOf(title, { href, open }) {
  const name = el("bdi", {}, title);
  if (href) return el("a", { href }, name);
  return open ? el("button", { type: "button", className: "link", onclick: (event) => open(event.currentTarget) }, name) : name;
}

/** A word on the state of something. @param tone good, warn, bad or plain */
export const chip = (tone, words) => el("span", { className: `chip chip-${tone}` }, words);

const DATE = new Intl.DateTimeFormat(locale, { dateStyle: "medium" });
const MOMENT = new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeStyle: "short" });

export const day = (iso) => DATE.format(new Date(iso));
export const moment = (iso) => MOMENT.format(new Date(iso));
