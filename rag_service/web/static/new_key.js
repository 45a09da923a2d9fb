// A new API key: asked for, and shown this once.

import { change } from "./api.js";
import { copyText } from "./copying.js";
import { formDialog, showDialog } from "./dialogs.js";
import { announce, el, icon } from "./dom.js";
import { t } from "./i18n.js";
import { isAdministrator } from "./session.js";

const SCOPES = ["read", "write", "admin"];

/** Make a key. @param user who makes it @param owner whose it is to be. Returns its description, or undefined */
export async function createKey(user, owner) {
  const isOwn = user.id === owner.id;
  const ownerMayAdminister = owner.role === "admin" && isAdministrator(user);
  const scopes = SCOPES.filter((scope) => (scope === "admin" ? ownerMayAdminister : user.scopes.includes(scope)));
  const key = await formDialog({
    title: isOwn ? t("key_new") : t("key_new_for", { name: owner.name }),
    fields: [
      { name: "name", label: t("name"), hint: t("key_name_hint"), required: true, maxLength: 200 },
      { name: "scopes", type: "checkboxes", label: t("key_scopes"), value: scopes.filter((scope) => scope !== "admin"),
        options: scopes.map((scope) => [scope, t(`scope_${scope}`)]) },
      { name: "expiresAt", type: "date", label: t("key_expires"), hint: t("key_expires_hint") },
    ],
    action: t("create"),
    save: ({ name, scopes: chosen, expiresAt }) =>
      change("POST", "/keys", {
        name,
        scopes: chosen,
        userId: isOwn ? null : owner.id,
        expiresAt: expiresAt ? new Date(`${expiresAt}T23:59:59`).toISOString() : null,
      }),
  });
  if (key) showSecret({ title: t("key_made", { name: key.name }), text: t("key_once"), label: t("key_itself"), secret: key.key });
  return key;
}

/** Make a link with which a user chooses a password, and show it. */
export async function invite({ id, name }) {
  const { link } = await change("POST", `/users/${id}/invitation`);
  showSecret({ title: t("invitation_for", { name }), text: t("invitation_text"), label: t("invitation_itself"), secret: link });
}

/** What is shown this once, to be copied. */
function showSecret({ title, text, label: itself, secret }) {
  const label = el("span", {}, t("copy_key"));
  const box = el("input", { type: "text", readOnly: true, value: secret, className: "secret", "aria-label": itself, onfocus: () => box.select() });
  const copy = async () => {
    label.textContent = t((await copyText(secret)) ? "copied" : "copy_failed");
    announce(label.textContent);
  };
  const content = el("div", { className: "secret-row" }, box,
    el("button", { type: "button", className: "button", onclick: copy }, icon("copy"), label));
  showDialog({ title, text, content });
}
