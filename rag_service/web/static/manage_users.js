// Users, for administrators.

import { change, erase, read } from "./api.js";
import { confirmDialog, formDialog } from "./dialogs.js";
import { t } from "./i18n.js";
import { chip, day, makeRow } from "./listing.js";
import { Frame } from "./manage_frame.js";
import { createKey, invite } from "./new_key.js";
import { way } from "./session.js";

const roleField = (value) => ({
  name: "role", type: "select", label: t("role"), value, options: [["user", t("role_user")], ["admin", t("role_admin")]],
});

export function makeList(section, user) {
  const frame = new Frame(section, {
    title: t("manage_users"),
    lead: t("users_lead"),
    buttons: [{ label: t("user_new"), shape: "plus", onclick: create }],
    listing: { empty: t("users_none"), load: (slice, signal) => read("/users", slice, signal), row },
  });
  const at = ({ id }) => `/users/${id}`;

  function row(other) {
    const { name, role, active, subject, groups, createdAt, id } = other;
    const isSelf = id === user.id;
    return makeRow({
      icon: "person",
      title: name,
      state: isSelf ? chip("good", t("yourself")) : active ? null : chip("warn", t("inactive")),
      about: [t(`role_${role}`), subject ? t("user_subject", { subject }) : null, groups.length ? t("user_groups", { groups: groups.join(", ") }) : null, t("created_on", { day: day(createdAt) })],
      actions: [
        way === "password" && active && { icon: "copy", label: t("user_invite"), onclick: () => frame.trying(() => invite(other)) },
        { icon: "key", label: t("key_new"), onclick: () => frame.trying(() => createKey(user, other)) },
        !isSelf && { icon: "edit", label: t("edit"), onclick: () => edit(other) },
        !isSelf && active && { icon: "pause", label: t("deactivate"), onclick: () => deactivate(other) },
        !isSelf && !active && { icon: "play", label: t("activate"), onclick: () => frame.trying(() => setActive(other, true)) },
        !isSelf && { icon: "trash", label: t("delete"), onclick: () => remove(other) },
      ],
    });
  }

  async function create() {
    const saved = await formDialog({
      title: t("user_new"),
      fields: [
        { name: "name", label: t("name"), required: true, maxLength: 200 },
        roleField("user"),
        { name: "subject", label: t("subject"), hint: t("subject_hint"), maxLength: 200 },
      ],
      action: t("create"),
      save: ({ name, role, subject }) => change("POST", "/users", { name, role, subject: subject || null }),
    });
    if (!saved) return;
    await frame.changed(t("saved"));
    // Without a password, key or token nobody can come in.
    await frame.trying(() => (way === "password" ? invite(saved) : createKey(user, saved)));
  }

  async function edit(other) {
    const saved = await formDialog({
      title: t("edit_named", { name: other.name }),
      fields: [roleField(other.role)],
      action: t("save"),
      save: ({ role }) => change("PATCH", at(other), { role }),
    });
    await frame.changed(saved ? t("saved") : ""); // refused, it may be gone
  }

  async function setActive(other, active) {
    await change("PATCH", at(other), { active });
    await frame.changed(t("saved"));
  }

  const deactivate = (other) =>
    confirmDialog({
      title: t("deactivate_named", { name: other.name }),
      text: t("user_deactivate_text"),
      action: t("deactivate"),
      act: () => setActive(other, false),
    });

  async function remove(other) {
    const removed = await confirmDialog({
      title: t("delete_named", { name: other.name }),
      text: t("user_delete_text"),
      action: t("delete"),
      act: () => erase(at(other)),
    });
    if (removed) await frame.changed(t("deleted", { name: other.name }));
  }

  return frame.show();
}
