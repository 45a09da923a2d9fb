// Files on their way into a corpus: sent one after the other, then watched until they are indexed.

import { ApiError, change, upload as send } from "./api.js";
import { announce, byId, el, icon } from "./dom.js";
import { fileSize, percent, t, upright } from "./i18n.js";
import { pathOf } from "./folders.js";
import { errorNotice } from "./notice.js";
import { notifyDone } from "./notify.js";
import { iconOf } from "./places.js";
import { mayGoWell, ownReason } from "./refusal.js";
import { isFinal, watch } from "./watch.js";

const CLOSED = new Set(["done", "failed", "cancelled"]);

/** One file. */
export class Upload {
  /**
   * @param file to send
   * @param {Target} target
   * @param enqueue called with the upload to be sent again
   */
  constructor(file, target, enqueue) {
    this.file = file;
    this.target = target;
    this.outcome = null; // done | failed | cancelled
    this.documentId = null;
    this._id = null; // of the upload, once it is accepted
    this._enqueue = enqueue;
    this.name = target.name ?? pathOf(file) ?? file.name;
    this._state = el("p", { className: "upload-state" });
    this._bar = el("progress", { max: 1, value: 0, "aria-label": upright(this.name) });
    this._more = el("div", { className: "upload-more" });
    this._button = el("button", { type: "button", className: "quiet" });
    this.element = el(
      "li",
      { className: "upload" },
      icon(iconOf(this.name), "icon-file"),
      el(
        "div",
        { className: "upload-body" },
        el("p", { className: "upload-name" }, el("bdi", {}, upright(this.name)), el("span", { className: "muted" }, ` · ${fileSize(file.size)}`)),
        this._bar,
        this._state,
      ),
      this._button,
      this._more,
    );
    this.wait();
  }

  wait() {
    this.outcome = null;
    this._cancel = new AbortController();
    this._show("waiting", t("upload_waiting"));
    this._offer("cancel", () => {
      this._cancel.abort();
      if (this.element.dataset.state === "waiting") this._finish("cancelled", t("upload_cancelled"));
    });
  }

  /** Send the file, or have the service try again with what it has. Ends when it is accepted or refused. */
  async run() {
    if (this._cancel.signal.aborted) return;
    try {
      this._follow(this._id === null ? await this._send() : await change("POST", `/uploads/${this._id}/retry`));
    } catch (error) {
      if (this._cancel.signal.aborted) this._finish("cancelled", t("upload_cancelled"));
      else if (!error.problem) throw error;
      else {
        if (error.status === 404) this._id = null;
        this._fail(error);
      }
    }
  }

  async _send() {
    this._bar.value = 0;
    this._show("sending", t("upload_sending", { percent: percent(0) }));
    this._checkSize();
    return send(await this.target.corpus(), this.file, {
      name: this.target.name ?? this.file.name,
      path: this.target.path ?? pathOf(this.file),
      ttlSeconds: this.target.ttlSeconds ?? null,
      tags: this.target.tags,
      signal: this._cancel.signal,
      onProgress: (share) => {
        this._bar.value = share;
        this._state.textContent = t("upload_sending", { percent: percent(share) });
      },
    });
  }

  /** The service checks as well; this spares the sending of what it will refuse. */
  _checkSize() {
    const limit = Number(byId("drop-zone").dataset.maxMegabytes);
    if (this.file.size <= limit * 1024 * 1024) return;
    const explanation = t("upload_too_large", { size: fileSize(this.file.size), limit });
    throw new ApiError({ code: "too_large", explanation });
  }

  _follow(accepted) {
    this._id = accepted.uploadId;
    this.documentId = accepted.documentId;
    if (accepted.status === "indexed") {
      this._finish("done", t("upload_unchanged"));
      return;
    }
    this._button.hidden = true;
    this._tell(accepted);
    if (!isFinal(accepted)) {
      watch(this._id, (state, error) => (error ? this._fail(error) : this._tell(state)));
    }
  }

  _tell(state) {
    const { status, reason, code, progress } = state;
    if (status === "indexed") {
      this._finish("done", t(this.target.name ? "upload_replaced" : "upload_added", { count: progress.total ?? progress.done }));
    } else if (status === "failed") {
      this._fail(new ApiError({ code: code ?? "internal_error", detail: reason }));
    } else {
      this._show("working", statusWords(state));
      if (progress.total) this._bar.value = progress.done / progress.total;
      else this._bar.removeAttribute("value");
    }
  }

  _fail(error) {
    this._finish("failed", t("upload_failed"), mayGoWell(error.code));
    this._more.replaceChildren(errorNotice(error));
  }

  _finish(outcome, words, again = outcome === "cancelled") {
    this.outcome = outcome;
    this._show(outcome, words);
    this._button.hidden = !again;
    if (again) this._offer("try_again", () => this._enqueue(this));
    this.target.ended(this);
  }

  _show(state, words) {
    const moved = this.element.dataset.state !== state;
    this.element.dataset.state = state;
    const shape = { done: "verified", failed: "not_found", cancelled: "close" }[state];
    this._state.replaceChildren(...[shape && icon(shape), words].filter(Boolean));
    this._bar.hidden = CLOSED.has(state);
    if (moved) this._more.replaceChildren();
  }

  _offer(key, action) {
    this._button.hidden = false;
    this._button.textContent = t(key);
    this._button.onclick = action;
  }
}

/** What an upload is doing, in words. */
export function statusWords({ status, code, reason, progress }) {
  const figures = status === "embedding" && progress.total ? ` ${t("upload_progress", { done: progress.done, total: progress.total })}` : "";
  const wait = status === "pending" && reason ? ` ${ownReason(code) ?? reason}` : "";
  return t(`status_${status}`) + figures + wait;
}

const FEW = 5; // rows that do not push the list of documents out of sight
const finished = byId("uploads-done");
const uploads = [];
const queue = [];
let working = false;
let began = 0;

/** Take files in. @param target as `Upload` takes it, with `ended`, called whenever one has come to its end */
export function addFiles(files, target) {
  if (uploads.every(({ outcome }) => outcome)) began = Date.now();
  const own = { ...target, ended: (one) => (target.ended(), place(one), settle(one), tell(), summarise()) };
  for (const file of files) {
    const one = new Upload(file, own, enqueue);
    uploads.push(one);
    enqueue(one);
  }
}

function enqueue(upload) {
  upload.wait();
  queue.push(upload);
  place(upload);
  tell();
  work();
}

/** What failed stands first, what is done in a list of its own, out of the way of the documents below. */
function place({ element, outcome }) {
  if (outcome === "done") finished.querySelector("ul").append(element);
  else byId("uploads")[outcome === "failed" ? "prepend" : "append"](element);
}

/** Failures of a file that has been added after all, repaired or replaced, are over. */
function settle(added) {
  if (added.outcome !== "done") return;
  const isSame = ({ documentId, name, target }) =>
    (documentId !== null && documentId === added.documentId) || (name === added.name && target.into === added.target.into);
  drop(uploads.filter((one) => one.outcome === "failed" && isSame(one)));
}

function drop(those) {
  for (const one of those) {
    one.element.remove();
    uploads.splice(uploads.indexOf(one), 1);
  }
}

/** How all fare together: here, and in the navigation while another view is shown. */
function tell() {
  const { done = 0, failed = 0, cancelled = 0 } = counts();
  const total = uploads.length - cancelled;
  const isOver = done + failed === total;
  byId("uploads-head").hidden = !uploads.length;
  byId("uploads-count").textContent = [t("upload_progress", { done, total }), failed && t("uploads_failed", { count: failed })].filter(Boolean).join(", ");
  byId("uploads").hidden = done === uploads.length;
  Object.assign(byId("uploads-bar"), { max: total || 1, value: done + failed, hidden: isOver });
  byId("uploads-progress").hidden = isOver;
  byId("uploads-progress").textContent = percent((done + failed) / (total || 1));
  finished.hidden = !done;
  finished.querySelector("span").textContent = t("uploads_done", { count: done });
  if (done === FEW + 1) finished.open = false;
}

/** How many have come to which end. */
function counts() {
  const by = {};
  for (const { outcome } of uploads) if (outcome) by[outcome] = (by[outcome] ?? 0) + 1;
  return by;
}

async function work() {
  if (working) return;
  working = true;
  while (queue.length) await queue.shift().run();
  working = false;
}

/** Told once all have come to their end. */
function summarise() {
  if (uploads.some(({ outcome }) => !outcome)) return;
  const { done = 0, failed = 0 } = counts();
  announce(t("upload_summary", { count: done, failed }));
  notifyDone(t("upload_summary", { count: done, failed }), began);
}

byId("clear-uploads").addEventListener("click", () => {
  drop(uploads.filter(({ outcome }) => outcome));
  tell();
  byId("files").focus();
});
addEventListener("beforeunload", (event) => {
  if (working) event.preventDefault();
});
