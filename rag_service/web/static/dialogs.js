// Forms in a dialog of the page: fields, the API's refusals at the fields that they name, nothing typed lost.

import { el, icon } from "./dom.js";
import { t } from "./i18n.js";
import { errorNotice } from "./notice.js";
import { faultWords } from "./refusal.js";

let count = 0;

/**
 * Show a form and wait for its end.
 *
 * @param title of the dialog; also its accessible name
 * @param text what it is about
 * @param fields as `makeField` takes them
 * @param action words on the button that saves
 * @param danger whether that destroys something
 * @param content what stands between the fields and the buttons
 * @param isChoice whether it can be cancelled
 * @param save called with the values by name; an ApiError keeps the dialog open and is shown
 * @returns what `save` returns; undefined when it was cancelled, or another one is open
 */
export function formDialog({ title, text = null, fields = [], action, danger = false, content = null, isChoice = true, save }) {
  // A second click, before what the first one had to fetch was there.
  if (isChoice && document.querySelector(".dialog[open]")) return Promise.resolve();
  const id = `dialog-${(count += 1)}`;
  const made = fields.map(makeField);
  const messages = el("div", {});
  const submit = el("button", { type: "submit", className: danger ? "button danger" : "button primary" }, action);
  const cancel = el("button", { type: "button", className: "button" }, t("cancel"));
  const form = el(
    "form",
    { method: "dialog", autocomplete: "off" },
    el("h2", { id, tabIndex: -1 }, title),
    text ? el("p", { className: "dialog-text" }, text) : null,
    messages,
    ...made.map(({ element }) => element),
    content,
    el("div", { className: "form-actions" }, submit, isChoice ? cancel : null),
  );
  const dialog = el("dialog", { className: "dialog", "aria-labelledby": id }, form);
  document.body.append(dialog);

  return new Promise((resolve) => {
    let outcome;
    let saving = false;
    cancel.addEventListener("click", () => dialog.close());
    dialog.addEventListener("cancel", (event) => saving && event.preventDefault());
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(outcome);
    });
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      if (saving) return;
      saving = true;
      form.setAttribute("aria-busy", "true");
      submit.disabled = true;
      for (const field of made) field.fault(null);
      messages.replaceChildren();
      try {
        outcome = await save(Object.fromEntries(made.map(({ name, value }) => [name, value()])));
        dialog.close();
      } catch (error) {
        if (!error.problem) throw error;
        showFaults(error, made, messages);
      } finally {
        saving = false;
        submit.disabled = false;
        form.setAttribute("aria-busy", "false");
      }
    });
    dialog.showModal();
    (danger ? cancel : (made[0]?.control ?? content?.querySelector("input, button") ?? submit)).focus();
  });
}

/** Ask whether something is to be done. Returns what `act` returns; undefined when it was cancelled. */
export const confirmDialog = ({ title, text, action, act }) =>
  formDialog({ title, text, action, danger: true, save: async () => (await act()) ?? true });

/** Something to read (and copy) before going on. */
export const showDialog = ({ title, text = null, content }) =>
  formDialog({ title, text, content, action: t("done"), isChoice: false, save: () => true });

/** The API names the fields at fault; what no field shows is told above them. */
function showFaults(error, fields, messages) {
  const faults = error.problem.errors ?? [];
  const shown = fields.filter((field) => {
    const fault = faults.find(({ field: name }) => name === field.name);
    const words = fault && faultWords(fault.message);
    if (fault) field.fault(words ?? fault.message, { foreign: words === null });
    return fault;
  });
  if (shown.length) shown[0].control.focus();
  if (shown.length < Math.max(1, faults.length)) messages.replaceChildren(errorNotice(error));
}

/**
 * A labelled control.
 *
 * @param name as the API calls it
 * @param type text, number, date, textarea, select, checkbox or checkboxes
 * @param options [value, words] of a select or of checkboxes
 * @param value at the start; of checkboxes a list
 */
function makeField({ name, type = "text", label, hint = null, value = "", options = [], ...limits }) {
  const id = `field-${(count += 1)}`;
  const fault = el("p", { className: "fault", id: `${id}-fault`, hidden: true });
  const notes = [hint ? el("p", { className: "hint-text muted", id: `${id}-hint` }, hint) : null, fault].filter(Boolean);
  const described = notes.map((note) => note.id).join(" ");
  const build = type in BUILDERS ? BUILDERS[type] : BUILDERS.input;
  const { control, element, read } = build({ id, type, label, value, options, described, limits, notes });
  return {
    name,
    control,
    element,
    value: read,
    fault(message, { foreign = false } = {}) {
      fault.hidden = !message;
      // Every refusal of a field begins with its name, which the label has already said.
      fault.replaceChildren(...(message ? [icon("alert"), el("span", { lang: foreign ? "en" : null }, message)] : []));
      if (message) control.setAttribute("aria-invalid", "true");
      else control.removeAttribute("aria-invalid");
    },
  };
}

const labelled = (id, label, control, notes) =>
  el("div", { className: "field" }, el("label", { htmlFor: id }, label), control, ...notes);

const BUILDERS = {
  input({ id, type, label, value, described, limits, notes }) {
    const control = el("input", { id, type, value: value ?? "", "aria-describedby": described, ...limits });
    return { control, element: labelled(id, label, control, notes), read: () => control.value.trim() };
  },
  textarea({ id, label, value, described, limits, notes }) {
    const control = el("textarea", { id, rows: 4, value, "aria-describedby": described, ...limits });
    return { control, element: labelled(id, label, control, notes), read: () => control.value };
  },
  select({ id, label, value, options, described, notes }) {
    const choices = options.map(([one, words]) => el("option", { value: one }, words));
    const control = el("select", { id, "aria-describedby": described }, ...choices);
    control.value = value;
    return { control, element: labelled(id, label, control, notes), read: () => control.value };
  },
  checkbox({ id, label, value, described, notes }) {
    const control = el("input", { id, type: "checkbox", checked: Boolean(value), "aria-describedby": described });
    const element = el("div", { className: "field" }, el("label", { className: "check" }, control, label), ...notes);
    return { control, element, read: () => control.checked };
  },
  checkboxes({ id, label, value, options, described, notes }) {
    const boxes = options.map(([one, words]) => {
      const box = el("input", { type: "checkbox", value: one, checked: value.includes(one) });
      return { box, element: el("label", { className: "check" }, box, words) };
    });
    const control = el("fieldset", { id, tabIndex: -1, "aria-describedby": described },
      el("legend", {}, label), ...boxes.map(({ element }) => element));
    const element = el("div", { className: "field" }, control, ...notes);
    return { control, element, read: () => boxes.filter(({ box }) => box.checked).map(({ box }) => box.value) };
  },
};
