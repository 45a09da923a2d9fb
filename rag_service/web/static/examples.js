// What the empty page offers: questions over the visitor's own documents, or what to do where there are none.

import { read, whoAmI } from "./api.js";
import { byId, el, icon } from "./dom.js";
import { t } from "./i18n.js";
import { notice } from "./notice.js";
import { isAdministrator, mayWrite } from "./session.js";

/** Questions over the visitor's own documents take the place of those over the documents that come with the service. */
export async function showOwnExamples() {
  const user = await whoAmI().catch(() => null);
  const found = await read("/examples", { language: document.documentElement.lang }).catch(() => null); // the others stay
  if (user && found) byId("no-documents").replaceChildren(...(found.hasDocuments ? [] : [whatToDo(user)]));
  byId("examples-block").hidden = Boolean(found) && !found.items.length && !found.hasSamples;
  if (!found?.items.length) return;
  const button = ({ question }) =>
    el("button", { type: "button", className: "example" }, el("span", {}, question), icon("chevron"));
  byId("examples").replaceChildren(...found.items.map((example) => el("li", {}, button(example))));
}

/** What someone with these rights can do about there being no documents. */
function whatToDo(user) {
  const role = isAdministrator(user) ? "admin" : mayWrite(user) ? "user" : "reader";
  const add = el("a", { className: "button", href: "#documents" }, icon("upload"), t("go_documents"));
  const title = el("p", { className: "notice-title" }, t("no_documents"));
  return notice("info", title, el("p", {}, t(`no_documents_${role}`)), role === "reader" ? null : el("p", { className: "notice-actions" }, add));
}
