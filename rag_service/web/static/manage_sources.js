// Folders and sites that corpora are kept equal to: when they run, and how the last run went.

import { change, erase, read } from "./api.js";
import { idOf, isWritable, listCorpora } from "./corpora.js";
import { formDialog } from "./dialogs.js";
import { el } from "./dom.js";
import { t } from "./i18n.js";
import { chip, makeRow, moment } from "./listing.js";
import { Frame } from "./manage_frame.js";
import { isAdministrator, mayWrite } from "./session.js";
import { poll } from "./watch.js";

const LOOK_AGAIN = 3000; // milliseconds, while one is running or about to

export function makeList(section, user) {
  let isMoving = false;
  const frame = new Frame(section, {
    title: t("manage_sources"),
    lead: t("sources_lead"),
    buttons: [mayWrite(user) && { label: t("source_new"), shape: "plus", onclick: create }],
    listing: { empty: t("sources_none"), load, row },
  });
  const at = (source) => `/sources/${source.id}`;

  async function load(slice, signal) {
    const found = await read("/sources", slice, signal);
    const wasMoving = isMoving;
    isMoving = found.items.some(({ status, nextRunAt }) => status === "running" || new Date(nextRunAt) < new Date());
    if (isMoving && !wasMoving) poll(look, LOOK_AGAIN);
    return found;
  }

  async function look() {
    if (!frame.listing.element.isConnected) return (isMoving = false);
    await frame.listing.refresh();
    return isMoving;
  }

  function row(source) {
    const { target, corpusName, status, nextRunAt, lastRunAt, report, error } = source;
    return makeRow({
      icon: "replace",
      title: target,
      state: status === "running" ? chip("plain", t("status_parsing")) : error ? chip("bad", t("status_failed")) : null,
      about: [
        corpusName,
        lastRunAt && t("source_last", { moment: moment(lastRunAt) }),
        report && t("source_counts", report),
        status !== "running" && t("source_next", { moment: moment(nextRunAt) }),
      ],
      more: el("div", {},
        error ? el("p", { lang: "en" }, error) : null,
        report?.notTaken
          ? el("details", { className: "why" },
              el("summary", {}, t("source_not_taken", { count: report.notTaken })),
              el("ul", { lang: "en" }, ...report.reasons.map((reason) => el("li", {}, reason))))
          : null),
      actions: mayWrite(user)
        ? [
            status !== "running" && { icon: "play", label: t("source_run"), onclick: () => frame.trying(() => run(source)) },
            { icon: "trash", label: t("delete"), onclick: () => remove(source) },
          ]
        : [],
    });
  }

  async function run(source) {
    await change("POST", `${at(source)}/run`);
    await frame.changed(t("status_pending"));
  }

  async function create() {
    const corpora = (await listCorpora()).filter((corpus) => isWritable(user, corpus));
    const every = [["3600", t("lifetime_hours", { count: 1 })], ["86400", t("lifetime_days", { count: 1 })], ["604800", t("lifetime_days", { count: 7 })]];
    const saved = await formDialog({
      title: t("source_new"),
      fields: [
        { name: "target", type: isAdministrator(user) ? "text" : "url", label: t("source_target"), placeholder: "https://example.org/sitemap.xml", required: true, maxLength: 2000 },
        { name: "corpus", type: "select", label: t("manage_corpora"), value: "0", options: corpora.map(({ name }, place) => [String(place), name]) },
        { name: "everySeconds", type: "select", label: t("source_every"), value: "86400", options: every },
        { name: "depth", type: "number", label: t("source_depth"), value: "0", min: 0, max: 20, required: true },
      ],
      action: t("create"),
      save: async ({ target, corpus, everySeconds, depth }) =>
        change("POST", `/corpora/${await idOf(corpora[Number(corpus)])}/sources`, { target, everySeconds: Number(everySeconds), depth: Number(depth) }),
    });
    if (saved) await frame.changed(t("saved"));
  }

  async function remove(source) {
    const removed = await formDialog({
      title: t("delete_named", { name: source.target }),
      fields: [{ name: "documents", type: "checkbox", label: t("source_delete_documents"), value: false }],
      action: t("delete"),
      danger: true,
      save: async ({ documents }) => (await erase(`${at(source)}${documents ? "?documents=delete" : ""}`)) ?? true,
    });
    if (removed) await frame.changed(t("deleted", { name: source.target }));
  }

  return frame.show();
}
