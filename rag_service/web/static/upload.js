// Files into the documents: dropped or chosen, one after the other, each with its own progress and outcome.

import { ApiError, upload } from "./api.js";
import { announce, byId, el, icon } from "./dom.js";
import { fileSize, percent, t } from "./i18n.js";
import { errorNotice } from "./notice.js";
import { iconOf } from "./places.js";

class Upload {
  constructor(file, enqueue) {
    this.file = file;
    this.outcome = null; // done | failed | cancelled
    this._enqueue = enqueue;
    this._state = el("p", { className: "upload-state" });
    this._bar = el("progress", { max: 1, value: 0, "aria-label": file.name });
    this._more = el("div", { className: "upload-more" });
    this._button = el("button", { type: "button", className: "quiet" });
    this.element = el(
      "li",
      { className: "upload" },
      icon(iconOf(file.name), "icon-file"),
      el(
        "div",
        { className: "upload-body" },
        el("p", { className: "upload-name" }, file.name, el("span", { className: "muted" }, ` · ${fileSize(file.size)}`)),
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
    this._offer("upload_cancel", () => {
      this._cancel.abort();
      if (this.element.dataset.state === "waiting") this._finish("cancelled", t("upload_cancelled"));
    });
  }

  async run() {
    if (this._cancel.signal.aborted) return;
    this._bar.value = 0;
    this._show("sending", t("upload_sending", { percent: percent(0) }));
    try {
      this._checkSize();
      const { outcome, chunkCount } = await upload(this.file, {
        signal: this._cancel.signal,
        onProgress: (share) => this._progress(share),
      });
      this._finish("done", outcome === "unchanged" ? t("upload_unchanged") : t(`upload_${outcome}`, { count: chunkCount }));
    } catch (error) {
      if (this._cancel.signal.aborted) this._finish("cancelled", t("upload_cancelled"));
      else if (!error.problem) throw error;
      else this._finish("failed", t("upload_failed"), errorNotice(error));
    }
  }

  /** The service checks as well; this spares the sending of what it will refuse. */
  _checkSize() {
    const limit = Number(byId("drop-zone").dataset.maxMegabytes);
    if (this.file.size <= limit * 1024 * 1024) return;
    const explanation = t("upload_too_large", { size: fileSize(this.file.size), limit });
    throw new ApiError({ code: "too_large", explanation });
  }

  _progress(share) {
    this._bar.value = share;
    if (share < 1) this._state.textContent = t("upload_sending", { percent: percent(share) });
    else {
      this._bar.removeAttribute("value"); // indexing tells no progress
      this._show("reading", t("upload_reading"));
    }
  }

  _finish(outcome, words, more = null) {
    this.outcome = outcome;
    this._show(outcome, words);
    if (more) this._more.replaceChildren(more);
    if (outcome === "done") this._button.hidden = true;
    else this._offer("upload_retry", () => this._enqueue(this));
  }

  _show(state, words) {
    this.element.dataset.state = state;
    const shape = { done: "verified", failed: "not_found", cancelled: "close" }[state];
    this._state.replaceChildren(...[shape && icon(shape), words].filter(Boolean));
    this._bar.hidden = this.outcome !== null;
    this._more.replaceChildren();
  }

  _offer(key, action) {
    this._button.hidden = false;
    this._button.textContent = t(key);
    this._button.onclick = action;
  }
}

export function startUploads() {
  const list = byId("uploads");
  const zone = byId("drop-zone");
  const uploads = [];
  const queue = [];
  let working = false;

  async function work() {
    if (working) return;
    working = true;
    while (queue.length) await queue.shift().run();
    working = false;
    const count = uploads.filter(({ outcome }) => outcome === "done").length;
    const failed = uploads.filter(({ outcome }) => outcome === "failed").length;
    announce(t("upload_summary", { count, failed }));
  }

  function enqueue(upload) {
    upload.wait();
    queue.push(upload);
    work();
  }

  function take(files) {
    for (const file of files) {
      const one = new Upload(file, enqueue);
      uploads.push(one);
      queue.push(one);
      list.append(one.element);
    }
    byId("uploads-head").hidden = !uploads.length;
    if (files.length) work();
  }

  byId("files").addEventListener("change", (event) => {
    take([...event.target.files]);
    event.target.value = ""; // the same file may be chosen again
  });
  byId("clear-uploads").addEventListener("click", () => {
    for (const done of uploads.filter(({ outcome }) => outcome)) {
      done.element.remove();
      uploads.splice(uploads.indexOf(done), 1);
    }
    byId("uploads-head").hidden = !uploads.length;
    byId("files").focus();
  });

  // A file dropped anywhere is meant for us: the browser's own way would be to leave the page for it.
  const holdsFiles = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files");
  addEventListener("dragover", (event) => {
    if (!holdsFiles(event)) return;
    event.preventDefault();
    zone.classList.add("is-over");
  });
  addEventListener("dragleave", (event) => {
    if (!event.relatedTarget) zone.classList.remove("is-over");
  });
  addEventListener("drop", (event) => {
    if (!holdsFiles(event)) return;
    event.preventDefault();
    zone.classList.remove("is-over");
    const items = [...event.dataTransfer.items].filter(({ kind }) => kind === "file");
    const files = items.filter((item) => !item.webkitGetAsEntry?.()?.isDirectory).map((item) => item.getAsFile());
    if (files.length < items.length) announce(t("upload_folder"));
    location.hash = "#documents";
    take(files.filter(Boolean));
  });
  addEventListener("beforeunload", (event) => {
    if (working) event.preventDefault();
  });
}
