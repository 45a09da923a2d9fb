// A question of the conversation in a box of its own, in its place, to be asked in other words.

import { byId, el } from "./dom.js";
import { t } from "./i18n.js";

/**
 * Show the box in place of the heading, until it is sent or left.
 *
 * @param heading of the question @param send called with the new words; returns whether they are taken
 * @returns {Promise<void>}
 */
export function editQuestion(heading, question, send) {
  const box = el("textarea", { value: question, rows: 1, maxLength: byId("question").dataset.max, "aria-label": t("edit_question") });
  const cancel = el("button", { type: "button", className: "button" }, t("cancel"));
  const form = el(
    "form",
    { className: "editing", autocomplete: "off" },
    box,
    el("p", { className: "muted" }, t("edit_replaces")),
    el("p", { className: "form-actions" }, el("button", { type: "submit", className: "button primary" }, t("edit_send")), cancel),
  );
  return new Promise((resolve) => {
    const leave = () => {
      form.remove();
      heading.hidden = false;
      resolve();
    };
    cancel.addEventListener("click", leave);
    box.addEventListener("keydown", (event) => {
      if (event.key === "Escape") leave();
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      form.requestSubmit();
    });
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const words = box.value.trim();
      if (words && send(words)) resolve();
    });
    heading.hidden = true;
    heading.after(form);
    box.style.height = `${box.scrollHeight}px`;
    box.focus();
  });
}
