// What questions are answered from where no agent is chosen: all documents, or some corpora, documents or tags.

import { chosenAgent } from "./agents.js";
import { read } from "./api.js";
import { byId, el, icon } from "./dom.js";
import { readScope, saveScope } from "./history.js";
import { t, upright } from "./i18n.js";

/** @type {Scope} */
const ALL = { corpora: [], documents: [], tags: [] };
let scope = { ...ALL, ...readScope() };
const ids = (items) => items.map(({ id }) => id);

/** {words, filters} of the next question; null: all documents, or those of the agent. */
export function currentScope() {
  const words = [...scope.corpora, ...scope.documents].map(({ name }) => name).concat(scope.tags.map((tag) => `#${tag}`)).map(upright);
  if (!words.length || chosenAgent()) return null;
  const filters = { corpusIds: ids(scope.corpora), documentIds: ids(scope.documents), tags: scope.tags };
  return { words: words.join(", "), filters };
}

/** Choose anew. @param {Partial<Scope>} part what is left out is not limited */
export function scopeTo(part) {
  scope = { ...ALL, ...part };
  saveScope(scope);
  show();
}

export function startScope() {
  byId("scope").addEventListener("click", choose);
  byId("scope-clear").addEventListener("click", () => {
    scopeTo({});
    byId("scope").focus();
  });
  document.addEventListener("agent-chosen", show);
  // Single documents were chosen for the conversation that ends; corpora and tags are where its user works.
  document.addEventListener("conversation-begun", () => scope.documents.length && scopeTo({ corpora: scope.corpora, tags: scope.tags }));
  show();
}

function show() {
  const words = currentScope()?.words;
  byId("scope-choice").hidden = chosenAgent() !== null;
  byId("scope").replaceChildren(icon("files"), el("span", { className: "scope-words" }, words ?? t("scope_all")), icon("chevron"));
  byId("scope").title = t("scope_title");
  byId("scope-clear").hidden = !words;
}

async function choose() {
  const [{ formDialog }, { titleOf }] = await Promise.all([import("./dialogs.js"), import("./corpora.js")]);
  const list = (path) => read(path, { limit: 500 }).then(({ items }) => items, () => []);
  const [known, used] = await Promise.all([list("/corpora"), list("/tags")]);
  const corpora = known.filter(({ active }) => active);
  const unused = scope.tags.filter((tag) => used.every(({ name }) => name !== tag)).map((name) => ({ name, documents: 0 }));
  const tags = [...used, ...unused].map((tag) => ({ ...tag, id: tag.name }));
  const picked = (items, ids, words = ({ name }) => name) => items.filter(({ id }) => ids.includes(id)).map((one) => ({ id: one.id, name: words(one) }));
  const isAlone = ({ name }) => corpora.filter((one) => one.name === name).length === 1;
  const box = (name, label, items, value, words, hint = null) =>
    items.length ? [{ name, type: "checkboxes", label, hint, value, options: items.map((one) => [one.id, words(one)]) }] : [];
  await formDialog({
    title: t("scope_title"),
    text: t("scope_text"),
    fields: [
      ...box("corpora", t("manage_corpora"), corpora, ids(scope.corpora), titleOf),
      ...box("documents", t("scope_documents"), scope.documents, ids(scope.documents), ({ name }) => upright(name)),
      ...box("tags", t("tags"), tags, scope.tags, ({ name, documents }) => `${upright(name)} · ${documents}`, t("scope_tags_hint")),
    ],
    content: el("p", {}, el("a", { href: "#documents" }, t("scope_single"))),
    action: t("scope_apply"),
    save: (values) => {
      scopeTo({
        corpora: picked(corpora, values.corpora ?? [], (one) => (isAlone(one) ? one.name : titleOf(one))),
        documents: picked(scope.documents, values.documents ?? []),
        tags: values.tags ?? [],
      });
    },
  });
}
