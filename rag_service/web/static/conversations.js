// Conversations that are kept: found, opened, renamed, exported, deleted.

import { change, erase, read, whoAmI } from "./api.js";
import { confirmDialog, formDialog } from "./dialogs.js";
import { announce, byId, catchFocus } from "./dom.js";
import { exportConversation } from "./exporting.js";
import { t } from "./i18n.js";
import { chip, Listing, makeRow, moment } from "./listing.js";
import { trying } from "./notice.js";
import { mayWrite } from "./session.js";

const TYPING = 250; // milliseconds after the last key until it is searched
const search = byId("conversations-search");
let writable = false;
let timer = 0;

const words = () => search.value.trim() || null;
const listing = new Listing({
  label: byId("conversations-title").textContent,
  empty: () => t(words() ? "conversations_not_found" : "conversations_none"),
  load: (slice, signal) => read("/conversations", { ...slice, q: words() }, signal),
  row,
});
byId("conversations-list").append(listing.element);
search.addEventListener("input", () => {
  clearTimeout(timer);
  timer = setTimeout(() => listing.show(0), TYPING);
});

/** Show the part; each time it is opened, what is there is fetched anew. */
export async function open() {
  writable = mayWrite(await whoAmI());
  await listing.refresh();
}

function row(conversation) {
  const title = conversation.title || t("conversation_untitled");
  return makeRow({
    icon: "ask",
    title,
    href: `#ask/${conversation.id}`,
    state: conversation.pinned ? chip("plain", t("pinned")) : null,
    about: [moment(conversation.updatedAt)],
    actions: [
      writable && { icon: "pin", label: t(conversation.pinned ? "unpin" : "pin"), onclick: () => pin(conversation) },
      writable && { icon: "edit", label: t("rename"), onclick: () => rename(conversation, title) },
      { icon: "download", label: t("export"), onclick: () => exportConversation(conversation.id, title) },
      writable && { icon: "trash", label: t("delete"), onclick: () => remove(conversation, title) },
    ],
  });
}

const pin = ({ id, pinned }) =>
  trying(byId("conversations-messages"), async () => {
    await change("PATCH", `/conversations/${id}`, { pinned: !pinned });
    await settle(t("saved"));
  }, listing);

async function rename({ id }, title) {
  const saved = await formDialog({
    title: t("rename_named", { name: title }),
    fields: [{ name: "title", label: t("conversation_title"), value: title, maxLength: 200 }],
    action: t("save"),
    save: (values) => change("PATCH", `/conversations/${id}`, values),
  });
  await settle(saved ? t("saved") : ""); // refused, it may be gone
}

async function remove({ id }, title) {
  const removed = await confirmDialog({
    title: t("delete_named", { name: title }),
    text: t("conversation_delete_text"),
    action: t("delete"),
    act: () => erase(`/conversations/${id}`),
  });
  if (!removed) return;
  document.dispatchEvent(new CustomEvent("conversation-deleted", { detail: id }));
  await settle(t("deleted", { name: title }));
}

async function settle(said) {
  await listing.refresh();
  announce(said);
  catchFocus(byId("conversations-title"));
}
