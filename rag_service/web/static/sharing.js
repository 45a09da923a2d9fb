// A conversation that others may read: its link, and the end of it.

import { change, erase } from "./api.js";
import { copyText } from "./copying.js";
import { formDialog } from "./dialogs.js";
import { el, icon, tell } from "./dom.js";
import { t } from "./i18n.js";

const linkOf = (place) => new URL(`#ask/${place}`, location.href).href;

/** Copy the link to an answer of a conversation. */
export async function copyLink(id, answerId) {
  tell(t((await copyText(linkOf(`${id}/${answerId}`))) ? "copied" : "copy_failed"));
}

/** Offer to share a conversation or, if it is shared, its link and the end of that. Tells the page what has become of it. */
export async function openSharing({ id, shared }, title) {
  const path = `/conversations/${encodeURIComponent(id)}/share`;
  if (shared) {
    const ended = await formDialog({
      title: t("shared_named", { name: title }),
      text: t("share_text"),
      content: linkField(linkOf(id)),
      action: t("unshare"),
      danger: true,
      save: async () => (await erase(path)) ?? true,
    });
    if (ended) become(id, false, t("unshared"));
    return;
  }
  const begun = await formDialog({
    title: t("share_named", { name: title }),
    text: t("share_text"),
    action: t("share_action"),
    save: () => change("POST", path),
  });
  if (begun) become(id, true, t((await copyText(linkOf(id))) ? "share_done" : "share_not_copied"));
}

function become(id, shared, words) {
  document.dispatchEvent(new CustomEvent("conversation-shared", { detail: { id, shared } }));
  tell(words);
}

function linkField(link) {
  const onclick = async () => tell(t((await copyText(link)) ? "copied" : "copy_failed"));
  const copy = el("button", { type: "button", className: "button", onclick }, icon("copy"), t("copy_link"));
  return el("div", { className: "field" }, el("p", { className: "shared-link" }, el("a", { href: link }, link)), copy);
}
