// The documents of a corpus: what is there and how it fares, more of it, and less.

import { change, download, erase, read, whoAmI } from "./api.js";
import { deleteAll, moveAll } from "./batch.js";
import { idOf, isWritable, listCorpora, takeMade, titleOf } from "./corpora.js";
import { confirmDialog, formDialog } from "./dialogs.js";
import { announce, byId, catchFocus, el, icon } from "./dom.js";
import { fileSize, t, upright } from "./i18n.js";
import { lifetimeField, toSeconds } from "./lifetime.js";
import { chip, day, Listing, makeRow, moment } from "./listing.js";
import { trying } from "./notice.js";
import { extensionOf, iconOf } from "./places.js";
import { readable } from "./folders.js";
import { mayGoWell, ownReason } from "./refusal.js";
import { scopeTo } from "./scope.js";
import { addFiles, statusWords } from "./upload.js";
import { isFinal, watch } from "./watch.js";

const TYPING = 250; // milliseconds after the last key until it is searched
const SETTLE = 400; // milliseconds; of many files that end at once the list is fetched once
let user = null;
let corpora = [];
let corpus = null; // whose documents are shown
let ready = null;
let timer = 0; // of a search that waits
let refreshing = 0;

const listing = new Listing({
  label: t("documents_list"),
  empty: () => isChosen() ? t("documents_not_found") : t(corpora.length > 1 && isWritable(user, corpus) ? "documents_none_own" : "documents_none"),
  load: (slice, signal) =>
    corpus.id === null ? { items: [], total: 0 } : read(`/corpora/${corpus.id}/documents`, { ...slice, ...choice() }, signal),
  row,
  onSelect: showSelection,
});
byId("documents-list").append(listing.element);
byId("corpus").addEventListener("change", () => choose(byId("corpus").selectedIndex));

let tag = null; // only documents that have it
byId("documents-search").addEventListener("input", () => {
  clearTimeout(timer);
  timer = setTimeout(find, TYPING);
});
for (const id of ["documents-sort", "documents-failed"]) byId(id).addEventListener("change", find);
byId("documents-tag").addEventListener("click", () => chooseTag(null));

/** Before the corpora are known there is nothing to find; the first list follows the tools. */
function find() {
  if (corpus) listing.show(0);
}

/** What the tools above the list say, as parameters of the API. */
const choice = () => ({
  q: byId("documents-search").value.trim() || null,
  sort: byId("documents-sort").value,
  status: byId("documents-failed").checked ? "failed" : null,
  tag,
});

const isChosen = () => [choice().q, choice().status, tag].some((one) => one !== null);

async function chooseTag(wanted) {
  tag = wanted;
  byId("documents-tag").hidden = tag === null;
  byId("documents-tag").textContent = `${upright(tag ?? "")} ×`;
  byId("documents-tag").ariaLabel = t("tag_clear", { name: tag ?? "" });
  await listing.show(0);
}

/** What can be done with the documents that are ticked. */
function showSelection(documents) {
  const bar = byId("documents-selection");
  const focused = bar.contains(document.activeElement) ? document.activeElement.textContent : null;
  bar.hidden = !documents.length;
  if (bar.hidden) {
    if (focused) byId("documents-title").focus({ preventScroll: true });
    return;
  }
  const press = (words, onclick, shape = null) =>
    el("button", { type: "button", className: shape ? "button" : "quiet", onclick }, shape && icon(shape), words);
  const found = documents.filter(({ chunkCount }) => chunkCount);
  const others = corpora.filter((one) => one !== corpus && isWritable(user, one));
  bar.replaceChildren(
    el("span", { role: "status" }, t("selected", { count: documents.length })),
    ...[
      found.length ? press(t("ask_selected"), () => askAbout(found), "ask") : null,
      ...(isWritable(user, corpus) ? [press(t("delete"), () => settleAll(deleteAll(documents)), "trash")] : []),
      ...(isWritable(user, corpus) && others.length ? [press(t("move"), () => settleAll(moveAll(documents, others)), "replace")] : []),
      press(t("select_all"), () => listing.tickAll(true)),
      press(t("select_none"), () => listing.tickAll(false)),
    ].filter(Boolean),
  );
  if (focused) [...bar.querySelectorAll("button")].find(({ textContent }) => textContent === focused)?.focus({ preventScroll: true });
}

function askAbout(documents) {
  scopeTo({ documents: documents.map(({ id, fileName, name }) => ({ id, name: fileName ?? name })) });
  location.hash = "#ask";
}

/** Show the part; each time it is opened, what is there is fetched anew. */
export async function open() {
  ready = (ready ?? Promise.resolve()).catch(() => {}).then(load);
  await ready;
}

async function load() {
  user = await whoAmI();
  corpora = await listCorpora();
  const select = byId("corpus");
  select.replaceChildren(...corpora.map((one) => el("option", {}, titleOf(one))));
  byId("corpus-choice").hidden = corpora.length < 2;
  byId("drop-zone").hidden = true;
  const wanted = takeMade() ?? corpus?.id;
  if (corpora.length) await choose(Math.max(0, corpora.findIndex(({ id }) => id !== null && id === wanted)));
  else showNote(t("corpora_none"));
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
  const taken = readable(files, byId("files").accept);
  if (taken.length < files.length) announce(t("upload_left_out", { count: files.length - taken.length }));
  send(taken, { tags: byId("upload-tags").value });
}

function send(files, { name = null, path = null, ttlSeconds = null, tags = "" }) {
  const target = corpus; // another may be chosen meanwhile
  addFiles(files, { name, path, ttlSeconds, tags, into: `${target.kind} ${target.name}`, corpus: () => idOf(target), ended: refreshSoon });
}

function refreshSoon() {
  clearTimeout(refreshing);
  refreshing = setTimeout(() => (corpus.id === null ? open() : listing.refresh()), SETTLE);
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
    open: chunkCount > 0 ? (opener) => view(document, name, opener) : null,
    state,
    about: [
      document.name.includes("/") ? document.name : null,
      title && title !== name ? title : null,
      chunkCount ? t("passages", { count: chunkCount }) : null,
      fileSize(sizeBytes),
      t("added_on", { day: day(createdAt) }),
      expiresAt ? t("expires_on", { moment: moment(expiresAt) }) : null,
    ],
    more: el("div", {}, status === "failed" ? failure(document) : warnings(document), ...document.tags.map(tagButton)),
    actions: [
      writable && status === "failed" && document.uploadId && mayGoWell(document.code) && { icon: "retry", label: t("try_again"), onclick: () => retry(document) },
      writable && { icon: "replace", label: t("replace"), onclick: () => replace(document, name) },
      writable && { icon: "tag", label: t("tags"), onclick: () => setTags(document, name) },
      writable && { icon: "clock", label: t("lifetime"), onclick: () => setLifetime(document, name) },
      chunkCount > 0 && { icon: "download", label: t("download"), onclick: () => save(document, name) },
      writable && { icon: "trash", label: t("delete"), onclick: () => remove(document, name) },
    ],
  });
}

const tagButton = (name) =>
  el("button", { type: "button", className: "chip chip-plain", title: t("tag_only", { name }), onclick: () => chooseTag(name) }, upright(name));

function stateOf(document) {
  if (document.status === "indexed") return "";
  if (document.status !== "failed") return chip("plain", statusWords(document));
  return chip("bad", t(document.chunkCount ? "status_failed_older" : "status_failed"));
}

function failure({ code, reason }) {
  const own = ownReason(code);
  return reason ? el("p", { className: "row-fault" }, own && `${own} `, el("span", { lang: "en" }, reason)) : null;
}

/** What of the file is not in its text: scanned pages, attachments that could not be read. */
const warnings = ({ warnings: told }) => (told?.length ? el("p", { className: "muted", lang: "en" }, told.join(" ")) : null);

/** What fails is told above the list. */
const attempt = (action) => trying(byId("documents-messages"), action, listing);

const view = ({ id, contentHash, language }, name, opener) =>
  attempt(async () => (await import("./panel.js")).panel().openDocument({ id, contentHash, language, name }, opener));

const save = (document, name) => attempt(() => download(`/documents/${document.id}/original`, name));

const retry = (document) =>
  attempt(async () => {
    await change("POST", `/uploads/${document.uploadId}/retry`);
    await listing.refresh();
  });

/** A new version comes under the old name: that is what makes it replace. */
function replace(document, name) {
  const extension = extensionOf(name);
  const picker = el("input", { type: "file", accept: extension ? `.${extension}` : "" });
  const left = document.expiresAt ? Math.round((Date.parse(document.expiresAt) - Date.now()) / 1000) : null;
  picker.addEventListener("change", () => {
    const path = document.name.includes("/") ? document.name : null;
    send([...picker.files], { name, path, ttlSeconds: left === null ? null : Math.max(1, left), tags: document.tags.join() });
    byId("uploads-head").scrollIntoView({ block: "center" });
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
  await settle(saved ? t("saved") : ""); // refused, it may be gone
}

async function setTags(document, name) {
  const saved = await formDialog({
    title: t("tags_of", { name }),
    fields: [{ name: "tags", label: t("tags"), hint: t("tags_hint"), value: document.tags.join(", ") }],
    action: t("save"),
    save: ({ tags }) => change("PATCH", `/documents/${document.id}`, { tags: [...new Set(tags.split(",").map((tag) => tag.trim()))].filter(Boolean) }),
  });
  await settle(saved ? t("saved") : "");
}

async function remove(document, name) {
  const removed = await confirmDialog({
    title: t("delete_document", { name }),
    text: t("delete_document_text"),
    action: t("delete"),
    act: () => erase(`/documents/${document.id}`),
  });
  if (removed) await settle(t("deleted", { name }));
}

async function settleAll(changing) {
  const words = await changing;
  if (words) await settle(words);
}

async function settle(words) {
  await listing.refresh();
  announce(words);
  catchFocus(byId("documents-title"));
}
