// API keys: one's own, for administrators everybody's.

import { erase, read } from "./api.js";
import { confirmDialog } from "./dialogs.js";
import { t } from "./i18n.js";
import { chip, day, makeRow, moment } from "./listing.js";
import { Frame } from "./manage_frame.js";
import { createKey } from "./new_key.js";
import { isAdministrator, mayWrite } from "./session.js";

export async function makeList(section, user) {
  const frame = new Frame(section, {
    title: t("manage_keys"),
    lead: t("keys_lead"),
    buttons: [mayWrite(user) && { label: t("key_new"), shape: "plus", onclick: create }],
    listing: { empty: t("keys_none"), load: (slice, signal) => read("/keys", slice, signal), row },
  });
  const owners = isAdministrator(user)
    ? await read("/users", { limit: 500 }).then(({ items }) => items, () => [])
    : [user];
  const names = new Map(owners.map(({ id, name }) => [id, name]));

  function row(key) {
    const { name, prefix, scopes, userId, createdAt, lastUsedAt, expiresAt, revokedAt } = key;
    const isOver = expiresAt && new Date(expiresAt) < new Date();
    return makeRow({
      icon: "key",
      title: name,
      state: revokedAt ? chip("bad", t("key_revoked")) : isOver ? chip("warn", t("key_expired")) : null,
      about: [
        `${prefix}…`,
        names.get(userId) ?? userId,
        scopes.map((scope) => t(`scope_${scope}`)).join(" + "),
        t("created_on", { day: day(createdAt) }),
        lastUsedAt ? t("key_used", { moment: moment(lastUsedAt) }) : t("key_unused"),
        expiresAt ? t("expires_on", { moment: moment(expiresAt) }) : null,
      ],
      actions: [!revokedAt && mayWrite(user) && { icon: "trash", label: t("key_revoke"), onclick: () => revoke(key) }],
    });
  }

  async function create() {
    if (await createKey(user, user)) await frame.listing.refresh();
  }

  async function revoke(key) {
    const revoked = await confirmDialog({
      title: t("key_revoke_named", { name: key.name }),
      text: t("key_revoke_text"),
      action: t("key_revoke"),
      act: () => erase(`/keys/${key.id}`),
    });
    if (revoked) await frame.changed(t("key_revoked"));
  }

  return frame.show();
}
