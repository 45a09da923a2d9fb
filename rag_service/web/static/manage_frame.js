// What the lists of the manage part share: a heading, a button for something new, and the list below.

import { announce, catchFocus, el, icon } from "./dom.js";
import { Listing } from "./listing.js";
import { trying } from "./notice.js";

/**
 * A list with its head, put into `section`.
 *
 * @param title above it @param lead a sentence on what it is about
 * @param buttons of each {label, onclick, primary}
 * @param listing as `Listing` takes it, `label` aside
 */
export class Frame {
  constructor(section, { title, lead, buttons = [], listing }) {
    this._messages = el("div", {});
    this._heading = el("h2", { id: "manage-list-title", tabIndex: -1 }, title);
    this.listing = new Listing({ label: title, ...listing });
    const made = buttons.filter(Boolean).map(({ label, onclick, shape, primary = true }) =>
      el("button", { type: "button", className: primary ? "button primary" : "button", onclick: () => this.trying(onclick) }, icon(shape), label),
    );
    section.replaceChildren(
      el("div", { className: "list-head" }, el("div", {}, this._heading, el("p", { className: "muted" }, lead)),
        el("div", { className: "list-buttons" }, ...made)),
      this._messages,
      this.listing.element,
    );
  }

  show() {
    return this.listing.show(0);
  }

  /** Run an action; what the API refuses outside of a dialog is told above the list. */
  trying(action) {
    return trying(this._messages, action, this.listing);
  }

  /** After something was changed: the list anew, a word on it, and the focus where it makes sense. */
  async changed(words) {
    await this.listing.refresh();
    announce(words);
    catchFocus(this._heading);
  }
}
