// Thumbs and a comment on an answer, or on one of its citations: given, changed, and taken back.

import { change } from "./api.js";
import { announce, el, icon } from "./dom.js";
import { t } from "./i18n.js";
import { errorNotice } from "./notice.js";

let count = 0;

export class FeedbackBar {
  /**
   * @param answerId of the answer
   * @param {{thumbs: string, comment: string} | null} given before
   * @param onChange called with what is given now
   * @param citation its place among those of the answer; null: the whole answer
   */
  constructor(answerId, given, onChange, citation = null) {
    this._path = `/answers/${encodeURIComponent(answerId)}/feedback`;
    this._citation = citation;
    this._given = given;
    this._onChange = onChange;
    this._up = this._thumb("up");
    this._down = this._thumb("down");
    this.buttons = el("span", { className: "thumbs", role: "group", "aria-label": t("feedback") }, this._up, this._down);
    this.more = el("div", { className: "feedback-more" });
    this._show();
  }

  _thumb(thumbs) {
    const words = t(this._citation === null ? `feedback_${thumbs}` : `citation_${thumbs}`);
    const button = el(
      "button",
      { type: "button", className: "icon-button", title: words },
      icon(`thumb-${thumbs}`),
      el("span", { className: "sr-only" }, words),
    );
    button.addEventListener("click", () => this._press(thumbs));
    return button;
  }

  async _press(thumbs) {
    const comment = this.more.querySelector("textarea")?.value ?? this._given?.comment ?? "";
    if (this._given?.thumbs === thumbs) {
      if (await this._send(null)) announce(t("feedback_removed"));
      return;
    }
    if (!(await this._send({ thumbs, comment: comment.trim() }))) return;
    announce(t("feedback_thanks"));
    this._ask(thumbs, comment);
  }

  /** Store what is given, null for nothing. Whether it worked. */
  async _send(given) {
    this.buttons.setAttribute("aria-busy", "true");
    try {
      if (given) await change("PUT", this._path, { ...given, citation: this._citation });
      else await change("DELETE", this._citation === null ? this._path : `${this._path}?citation=${this._citation}`);
    } catch (error) {
      if (!error.problem) throw error;
      if (given || error.code !== "not_found") {
        // Below what was typed: that must not be lost.
        this.more.querySelector(".notice")?.remove();
        this.more.append(errorNotice(error));
        return false;
      }
    } finally {
      this.buttons.removeAttribute("aria-busy");
    }
    this._given = given;
    this._onChange(given);
    this._show();
    return true;
  }

  _show() {
    for (const [thumbs, button] of Object.entries({ up: this._up, down: this._down })) {
      button.setAttribute("aria-pressed", String(this._given?.thumbs === thumbs));
    }
    this.more.replaceChildren(...(this._given ? [this._summary()] : []));
  }

  _summary() {
    const { thumbs, comment } = this._given;
    const edit = el("button", { type: "button", className: "quiet", onclick: () => this._ask(thumbs, comment) },
      t(comment ? "feedback_edit" : "feedback_add"));
    return el("p", { className: "feedback-given" }, el("span", {}, comment ? `“${comment}”` : t("feedback_kept")), edit);
  }

  /** The comment's form. */
  _ask(thumbs, comment) {
    const id = `comment-${(count += 1)}`;
    const box = el("textarea", { id, rows: 2, maxLength: 4000, value: comment, "aria-describedby": `${id}-hint` });
    const form = el(
      "form",
      { className: "feedback-form" },
      el("label", { htmlFor: id }, t(`feedback_why_${thumbs}`)),
      box,
      el("p", { className: "muted", id: `${id}-hint` }, t("feedback_seen")),
      el(
        "div",
        { className: "form-actions" },
        el("button", { type: "submit", className: "button primary" }, t("feedback_send")),
        el("button", { type: "button", className: "button", onclick: () => this._close() }, t("cancel")),
      ),
    );
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      if (!(await this._send({ thumbs, comment: box.value.trim() }))) return;
      announce(t("feedback_thanks"));
      this._focus();
    });
    this.more.replaceChildren(form);
    box.focus();
  }

  _close() {
    this._show();
    this._focus();
  }

  _focus() {
    (this._given?.thumbs === "up" ? this._up : this._down).focus();
  }
}
