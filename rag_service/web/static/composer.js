// The question box: what is typed is kept, its length is told, and the last question can be recalled.

import { announce, byId, isWithin } from "./dom.js";
import { readDraft, saveDraft } from "./history.js";
import { t } from "./i18n.js";

const NEARLY_FULL = 0.8; // share of the limit from which the length is shown
const HINT_FOR = 4000; // milliseconds
const GROWS = CSS.supports("field-sizing", "content"); // with its text, by itself
const UNREAD = "#attached[aria-busy=true], #attached .upload:not([data-state=failed])"; // files that are on their way; a question waits for them

export class Composer {
  /**
   * @param ask called with a question; returns whether it is taken
   * @param stop called to stop the answer
   * @param last gives the question asked last, which arrow-up recalls; null where there is none
   */
  constructor({ ask, stop, last }) {
    this._box = byId("question");
    this._send = byId("send");
    this._stop = byId("stop");
    this._box.addEventListener("input", () => this.set(this.text));
    this._box.addEventListener("keydown", (event) => this._press(event, last));
    this._stop.addEventListener("click", stop);
    document.addEventListener("keydown", (event) => {
      const isTyping = isWithin(event.target, "input, textarea, select, dialog:modal");
      if (event.key === "/" && !isTyping && !event.ctrlKey && !event.metaKey && this._box.checkVisibility()) {
        event.preventDefault();
        this.focus();
      } else if (event.key === "Escape" && !this._stop.hidden && !document.querySelector("dialog[open]")) stop();
    });
    byId("ask-form").addEventListener("submit", (event) => {
      event.preventDefault();
      const question = this.text.trim();
      this._waits = Boolean(document.querySelector(UNREAD));
      if (this._waits) this.flash(t("attached_waits"), null);
      if (!question || this._waits || this._send.disabled || !ask(question)) return;
      this.set("");
      saveDraft(question); // until it is answered: a reload in between must not lose it
    });
    document.addEventListener("attached", ({ detail }) => {
      if (!this._waits || document.querySelector(UNREAD)) return;
      this._endWaiting();
      if (detail === "done") byId("ask-form").requestSubmit();
    });
    document.addEventListener("conversation-begun", () => this._waits && this._endWaiting());
    this.set(readDraft());
  }

  get text() {
    return this._box.value;
  }

  set(text) {
    this._box.value = text;
    saveDraft(text);
    this._showLength();
  }

  /** Put a question into the box, to be asked in other words. */
  edit(question) {
    this.set(question);
    this.focus();
    this._box.setSelectionRange(question.length, question.length);
  }

  focus() {
    this._box.focus();
  }

  showRunning(isRunning) {
    const hadFocus = [this._send, this._stop].some((one) => one === document.activeElement);
    this._send.hidden = isRunning;
    this._stop.hidden = !isRunning;
    if (hadFocus) (isRunning ? this._stop : this._box).focus();
  }

  _endWaiting() {
    this._waits = false;
    this._unflash();
  }

  /** Say why nothing happens. @param time milliseconds for which it is said; null: until that is over */
  flash(words, time = HINT_FOR) {
    announce(words);
    const note = /** @type {HTMLElement} */ (document.querySelector("#question-hint .keys"));
    note.dataset.usual ??= note.textContent;
    note.textContent = words;
    note.classList.add("is-told"); // on a phone, where the usual words are not shown, too
    clearTimeout(this._told);
    if (time !== null) this._told = setTimeout(() => this._unflash(), time);
  }

  _unflash() {
    const note = /** @type {HTMLElement} */ (document.querySelector("#question-hint .keys"));
    note.textContent = note.dataset.usual;
    note.classList.remove("is-told");
  }

  _press(event, last) {
    if (event.key === "ArrowUp" && !this.text && last() !== null) {
      event.preventDefault();
      this.edit(last());
    }
    // While a word is being composed (accents, Chinese), Enter belongs to the input method.
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    byId("ask-form").requestSubmit();
  }

  _showLength() {
    const max = Number(this._box.dataset.max);
    const length = [...this.text].length;
    byId("question-count").textContent = length > max * NEARLY_FULL ? t("too_long", { count: length, max }) : "";
    this._box.setAttribute("aria-invalid", String(length > max));
    this._send.disabled = length > max;
    if (GROWS) return;
    this._box.style.height = "auto";
    if (this._box.checkVisibility()) this._box.style.height = `${this._box.scrollHeight}px`; // hidden, it has none
  }
}
