// The corpora that the user may read; changed by their owners, global ones by administrators.

import { change, erase, read } from "./api.js";
import { kindWords, noteMade } from "./corpora.js";
import { confirmDialog, formDialog } from "./dialogs.js";
import { t } from "./i18n.js";
import { lifetime, lifetimeField, toSeconds } from "./lifetime.js";
import { chip, day, makeRow } from "./listing.js";
import { Frame } from "./manage_frame.js";
import { isAdministrator, mayWrite, way } from "./session.js";

const split = (names) => names.split(",").map((name) => name.trim()).filter(Boolean);

export function makeList(section, user) {
  const frame = new Frame(section, {
    title: t("manage_corpora"),
    lead: t("corpora_lead"),
    buttons: [mayWrite(user) && { label: t("corpus_new"), shape: "plus", onclick: create }],
    listing: { empty: t("corpora_none"), load: (slice, signal) => read("/corpora", slice, signal), row },
  });
  const mayChange = (corpus) => mayWrite(user) && (corpus.kind === "personal" || isAdministrator(user));
  const at = (corpus) => `/corpora/${corpus.id}`;

  function row(corpus) {
    const { name, active, shared, groups, kind, index, ttlSeconds, createdAt } = corpus;
    const readers = kind === "global" ? [readersOf(shared, groups)] : [];
    return makeRow({
      icon: "files",
      title: name,
      state: active ? null : chip("warn", t("inactive")),
      about: [kindWords(corpus), ...readers, t("corpus_kept", { time: lifetime(ttlSeconds).toLocaleLowerCase() }), t("corpus_index", { index }), t("created_on", { day: day(createdAt) })],
      actions: mayChange(corpus)
        ? [
            { icon: "edit", label: t("edit"), onclick: () => edit(corpus) },
            active
              ? { icon: "pause", label: t("deactivate"), onclick: () => deactivate(corpus) }
              : { icon: "play", label: t("activate"), onclick: () => frame.trying(() => setActive(corpus, true)) },
            { icon: "trash", label: t("delete"), onclick: () => remove(corpus) },
          ]
        : [],
    });
  }

  const readersOf = (shared, groups) =>
    groups.length && !shared ? t("corpus_read_by", { groups: groups.join(", ") }) : t(shared ? "corpus_shared" : "corpus_not_shared");
  const groupsField = ({ groups }) => ({ name: "groups", label: t("corpus_groups"), hint: t("corpus_groups_hint"), value: groups.join(", ") });
  const nameField = (value) => ({ name: "name", label: t("name"), value, required: true, maxLength: 200 });
  const shareField = (value) => ({ name: "shared", type: "checkbox", label: t("corpus_share"), hint: t("corpus_share_hint"), value });
  const keepField = (present) => lifetimeField(t("corpus_lifetime"), present, t("corpus_lifetime_hint"));

  async function create() {
    const { indices } = await read("/corpora", { limit: 1 });
    const kinds = [["personal", t("kind_personal")], ["global", t("kind_global")]];
    const saved = await formDialog({
      title: t("corpus_new"),
      fields: [
        nameField(""),
        isAdministrator(user) && { name: "kind", type: "select", label: t("kind"), hint: t("kind_hint"), value: "global", options: kinds },
        isAdministrator(user) && shareField(true),
        keepField(null),
        isAdministrator(user) && { name: "index", type: "select", label: t("index"), hint: t("index_hint"), value: indices[0], options: indices.map((one) => [one, one]) },
      ].filter(Boolean),
      action: t("create"),
      save: ({ name, kind = "personal", shared = null, ttlSeconds, index = null }) =>
        change("POST", "/corpora", { name, kind, shared, ttlSeconds: toSeconds(ttlSeconds), index }),
    });
    if (!saved) return;
    noteMade(saved);
    await frame.changed(t("saved"));
  }

  async function edit(corpus) {
    const saved = await formDialog({
      title: t("edit_named", { name: corpus.name }),
      fields: [nameField(corpus.name), corpus.kind === "global" && shareField(corpus.shared), corpus.kind === "global" && way === "provider" && groupsField(corpus), keepField(corpus.ttlSeconds)].filter(Boolean),
      action: t("save"),
      save: ({ name, shared = corpus.shared, groups = corpus.groups.join(), ttlSeconds }) =>
        change("PATCH", at(corpus), { name, shared, groups: split(groups), ttlSeconds: toSeconds(ttlSeconds) }),
    });
    await frame.changed(saved ? t("saved") : ""); // refused, it may be gone
  }

  async function setActive(corpus, active) {
    await change("PATCH", at(corpus), { active });
    await frame.changed(t("saved"));
  }

  async function deactivate(corpus) {
    await confirmDialog({
      title: t("deactivate_named", { name: corpus.name }),
      text: t("corpus_deactivate_text"),
      action: t("deactivate"),
      act: () => setActive(corpus, false),
    });
  }

  async function remove(corpus) {
    const removed = await confirmDialog({
      title: t("delete_named", { name: corpus.name }),
      text: t("corpus_delete_text"),
      action: t("delete"),
      act: () => erase(at(corpus)),
    });
    if (removed) await frame.changed(t("deleted", { name: corpus.name }));
  }

  return frame.show();
}
