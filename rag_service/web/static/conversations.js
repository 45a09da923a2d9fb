// Conversations that are kept: found, opened, renamed, shared, exported, deleted; and those that others share.

import { change, erase, read, whoAmI } from "./api.js";
import { confirmDialog, formDialog } from "./dialogs.js";
import { announce, byId, catchFocus, el } from "./dom.js";
import { exportConversation } from "./exporting.js";
import { t, upright } from "./i18n.js";
import { chip, Listing, makeRow, moment } from "./listing.js";
import { trying } from "./notice.js";
import { canShare, mayWrite } from "./session.js";
import { openSharing } from "./sharing.js";

const TYPING = 250; // milliseconds after the last key until it is searched
const search = byId("conversations-search");
const others = byId("conversations-shared"); // null: nothing is shared here
let writable = false;
let timer = 0;

const words = () => search.value.trim() || null;
const listing = new Listing({
  label: byId("conversations-title").textContent,
  empty: () => t(words() ? "conversations_not_found" : others?.checked ? "conversations_none_shared" : "conversations_none"),
  load: (slice, signal) => read("/conversations", { ...slice, q: words(), shared: others?.checked || null }, signal),
  row,
});
byId("conversations-list").append(listing.element);
search.addEventListener("input", () => {
  clearTimeout(timer);
  timer = setTimeout(() => listing.show(0), TYPING);
});

others?.addEventListener("change", () => listing.show(0));

/** Show the part; each time it is opened, what is there is fetched anew. */
export async function open() {
  writable = mayWrite(await whoAmI());
  await listing.refresh();
}

function row(conversation) {
  const title = conversation.title || t("conversation_untitled");
  const isOwn = writable && conversation.owner === null;
  const states = [conversation.pinned && "pinned", conversation.owner === null && conversation.shared && "shared"].filter(Boolean);
  return makeRow({
    icon: "ask",
    title,
    href: `#ask/${conversation.id}`,
    state: el("span", {}, ...states.map((state) => chip("plain", t(state)))),
    about: [conversation.owner, moment(conversation.updatedAt)],
    more: conversation.excerpt && excerpt(conversation.excerpt, words() ?? ""),
    actions: [
      isOwn && { icon: "pin", label: t(conversation.pinned ? "unpin" : "pin"), onclick: () => pin(conversation) },
      isOwn && { icon: "edit", label: t("rename"), onclick: () => rename(conversation, title) },
      isOwn && canShare && { icon: "share", label: t("share"), onclick: () => share(conversation, title) },
      { icon: "download", label: t("export"), onclick: () => exportConversation(conversation.id, title) },
      isOwn && { icon: "trash", label: t("delete"), onclick: () => remove(conversation, title) },
    ],
  });
}

/** What was said around the words, which are marked; without citation marks, and whole words at its ends. */
function excerpt(text, wanted) {
  const plain = text.replace(/\s*\[C\d+\]|\*\*/g, "").replace(/^…\S{0,20}\s/, "… ").replace(/\s\S{0,20}…$/, " …");
  const parts = upright(plain).split(new RegExp(`(${wanted.replace(/[^\p{L}\p{N}\s]/gu, "\\$&")})`, "i"));
  return el("p", { className: "row-excerpt" }, ...parts.map((part, place) => (place % 2 ? el("mark", {}, part) : part)));
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

async function share(conversation, title) {
  await openSharing(conversation, title);
  await listing.refresh();
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
