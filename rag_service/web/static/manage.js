// Corpora, sources, agents, people, keys and feedback: one list at a time, loaded when it is opened.

import { whoAmI } from "./api.js";
import { byId, el } from "./dom.js";
import { t } from "./i18n.js";
import { Newest } from "./newest.js";
import { isAdministrator, mayWrite } from "./session.js";

const LISTS = {
  corpora: () => import("./manage_corpora.js"),
  sources: () => import("./manage_sources.js"),
  agents: () => import("./manage_agents.js"),
  users: () => import("./manage_users.js"),
  keys: () => import("./manage_keys.js"),
  retrieval: () => import("./manage_retrieval.js"),
  feedback: () => import("./manage_feedback.js"),
};
const FOR_ADMINISTRATORS = new Set(["users", "feedback"]);
let shown = null;
const newest = new Newest(); // only the list that was chosen last is shown

/** Show a list by its name, the first when there is none of that name for this user. */
export async function open(name) {
  const signal = newest.begin();
  const user = await whoAmI();
  const names = Object.keys(LISTS).filter((one) => (one === "retrieval" ? mayWrite(user) : isAdministrator(user) || !FOR_ADMINISTRATORS.has(one)));
  const chosen = names.includes(name) ? name : names[0];
  const links = byId("manage-lists");
  if (!links.children.length) {
    links.append(...names.map((one) => el("a", { href: `#manage/${one}`, "data-list": one }, t(`manage_${one}`))));
  }
  for (const link of /** @type {Iterable<HTMLElement>} */ (links.children)) {
    if (link.dataset.list === chosen) {
      link.setAttribute("aria-current", "page");
      link.scrollIntoView({ block: "nearest", inline: "nearest" }); // on a phone the row of links is cut
    } else link.removeAttribute("aria-current");
  }
  const section = byId("manage-list");
  if (shown !== chosen) section.replaceChildren();
  const { makeList } = await LISTS[chosen]();
  if (signal.aborted) return;
  shown = chosen;
  await makeList(section, user);
}
