// The documents of a corpus: what is there and how it fares, more of it, and less.

import { change, download, read, whoAmI } from "./api.js";
import { idOf, isWritable, kindWords, listCorpora } from "./corpora.js";
import { confirmDialog, formDialog } from "./dialogs.js";
import { announce, byId, el } from "./dom.js";
import { fileSize, language, t } from "./i18n.js";
import { lifetimeField, toSeconds } from "./lifetime.js";
import { chip, day, Listing, makeRow, moment } from "./listing.js";
import { errorNotice } from "./notice.js";
import { extensionOf, iconOf } from "./places.js";
import { addFiles, statusWords } from "./upload.js";
import { isFinal, watch } from "./watch.js";

const SETTLE = 400; // milliseconds; of many files that end at once the list is fetched once
let user = null;
let corpora = [];
let corpus = null; // whose documents are shown
let ready = null;
let timer = 0;

const listing = new Listing({
  label: t("documents_list"),
  empty: () => t(corpora.length > 1 && isWritable(user, corpus) ? "documents_none_own" : "documents_none"),
  load: async (slice) => {
    const list = corpus.id === null ? { items: [], total: 0 } : await read(`/corpora/${corpus.id}/documents`, slice);
    showHint(list.poorlyRead ?? []);
    return list;
  },
  row,
});
byId("documents-list").append(listing.element);
byId("corpus").addEventListener("change", () => choose(byId("corpus").selectedIndex));

/** Show the part; each time it is opened, what is there is fetched anew. */
export async function open() {
  ready = (ready ?? Promise.resolve()).catch(() => {}).then(load);
  await ready;
}

async function load() {
  user = await whoAmI();
  corpora = await listCorpora();
  const select = byId("corpus");
  select.replaceChildren(...corpora.map((one) => el("option", {}, `${one.name} · ${kindWords(one)}`)));
  byId("corpus-choice").hidden = corpora.length < 2;
  byId("drop-zone").hidden = true;
  if (corpora.length) await choose(Math.max(0, corpora.findIndex(({ id }) => id !== null && id === corpus?.id)));
  else showNote(t("corpora_none"));
}

/** Documents in languages that the embedding model reads badly. */
function showHint(codes) {
  const names = new Intl.DisplayNames([language], { type: "language" });
  const languages = new Intl.ListFormat(language).format(codes.map((code) => names.of(code)));
  byId("documents-hint").hidden = !codes.length;
  byId("documents-hint").textContent = codes.length ? t("documents_poorly_read", { languages }) : "";
}

function showNote(words) {
  byId("corpus-note").hidden = !words;
  byId("corpus-note").textContent = words;
}

async function choose(index) {
  const isSame = corpus !== null && corpus.id === corpora[index].id; // opened again: where its reader was
  corpus = corpora[index];
  byId("corpus").selectedIndex = index;
  const writable = isWritable(user, corpus);
  byId("drop-zone").hidden = !writable;
  showNote(writable ? "" : t(corpus.active ? "corpus_read_only" : "corpus_inactive"));
  await (isSame ? listing.refresh() : listing.show(0));
}

/** Add files to the corpus that is shown. */
export async function take(files) {
  await (ready ??= load()).catch(() => {});
  if (!corpus || !isWritable(user, corpus)) {
    announce(t("corpus_read_only"));
    return;
  }
  send(files, {});
}

function send(files, { name, ttlSeconds }) {
  const target = corpus; // another may be chosen meanwhile
  addFiles(files, { name, ttlSeconds, corpus: () => idOf(target), ended: refreshSoon });
}

function refreshSoon() {
  clearTimeout(timer);
  timer = setTimeout(() => (corpus.id === null ? open() : listing.refresh()), SETTLE);
}

function row(document) {
  const { title, fileName, chunkCount, sizeBytes, createdAt, expiresAt, status } = document;
  const name = fileName ?? document.name;
  const writable = isWritable(user, corpus);
  const state = el("span", { className: "row-state" }, stateOf(document));
  if (document.uploadId && !isFinal(document)) {
    watch(document.uploadId, (upload, error) => {
      if (!state.isConnected) return; // the list has been fetched anew
      if (error || isFinal(upload)) refreshSoon();
      else state.replaceChildren(chip("plain", statusWords(upload)));
    });
  }
  return makeRow({
    icon: iconOf(name),
    title: name,
    state,
    about: [
      title && title !== name ? title : null,
      chunkCount ? t("passages", { count: chunkCount }) : null,
      fileSize(sizeBytes),
      t("added_on", { day: day(createdAt) }),
      expiresAt ? t("expires_on", { moment: moment(expiresAt) }) : null,
    ],
    more: status === "failed" ? failure(document) : warnings(document),
    actions: [
      writable && status === "failed" && document.uploadId && { icon: "retry", label: t("try_again"), onclick: () => retry(document) },
      writable && { icon: "replace", label: t("replace"), onclick: () => replace(document, name) },
      writable && { icon: "clock", label: t("lifetime"), onclick: () => setLifetime(document, name) },
      chunkCount > 0 && { icon: "download", label: t("download"), onclick: () => save(document, name) },
      writable && { icon: "trash", label: t("delete"), onclick: () => remove(document, name) },
    ],
  });
}

function stateOf(document) {
  if (document.status === "indexed") return "";
  if (document.status !== "failed") return chip("plain", statusWords(document));
  return chip("bad", t(document.chunkCount ? "status_failed_older" : "status_failed"));
}

const failure = ({ reason }) => (reason ? el("p", { className: "row-fault", lang: "en" }, reason) : null);

/** What of the file is not in its text: scanned pages, attachments that could not be read. */
const warnings = ({ warnings: told }) => (told?.length ? el("p", { className: "muted", lang: "en" }, told.join(" ")) : null);

/** What fails is told above the list. */
async function trying(action) {
  const messages = byId("documents-messages");
  messages.replaceChildren();
  try {
    await action();
  } catch (error) {
    if (!error.problem) throw error;
    messages.replaceChildren(errorNotice(error));
  }
}

const save = (document, name) => trying(() => download(`/documents/${document.id}/original`, name));

const retry = (document) =>
  trying(async () => {
    await change("POST", `/uploads/${document.uploadId}/retry`);
    await listing.refresh();
  });

/** A new version comes under the old name: that is what makes it replace. */
function replace(document, name) {
  const extension = extensionOf(name);
  const picker = el("input", { type: "file", accept: extension ? `.${extension}` : "" });
  const left = document.expiresAt ? Math.round((new Date(document.expiresAt) - Date.now()) / 1000) : null;
  picker.addEventListener("change", () => {
    send([...picker.files], { name, ttlSeconds: left === null ? null : Math.max(1, left) });
    byId("uploads").scrollIntoView({ block: "center" });
  });
  picker.click();
}

async function setLifetime(document, name) {
  const saved = await formDialog({
    title: t("lifetime_of", { name }),
    text: t("lifetime_text"),
    fields: [lifetimeField(t("lifetime"))],
    action: t("save"),
    save: ({ ttlSeconds }) => change("PATCH", `/documents/${document.id}`, { ttlSeconds: toSeconds(ttlSeconds) }),
  });
  if (saved) await settle(t("saved"));
}

async function remove(document, name) {
  const removed = await confirmDialog({
    title: t("delete_document", { name }),
    text: t("delete_document_text"),
    action: t("delete"),
    act: () => change("DELETE", `/documents/${document.id}`),
  });
  if (removed) await settle(t("deleted", { name }));
}

async function settle(words) {
  await listing.refresh();
  announce(words);
  byId("documents-title").focus({ preventScroll: true }); // the row that had the focus is gone
}
