// Files that come with a question: pasted, dropped or chosen beside the question box. They go into the user's own corpus
// for a day, unless the user keeps them, and the question is asked of them alone.

import { chooseAgent, chosenAgent } from "./agents.js";
import { change, erase, whoAmI } from "./api.js";
import { idOf, ownCorpus } from "./corpora.js";
import { announce, byId, el, hidden, icon } from "./dom.js";
import { t, upright } from "./i18n.js";
import { notice, trying } from "./notice.js";
import { iconOf } from "./places.js";
import { scopeTo } from "./scope.js";
import { mayWrite } from "./session.js";
import { ATTACHED, read, write } from "./storage.js";
import { Upload } from "./upload.js";

const UNKEPT = 24 * 3600; // seconds
const list = byId("attached");
const messages = document.querySelector(".ask .view-messages");
let attached = JSON.parse(read(ATTACHED) ?? "[]"); // {id, name, isKept}

for (const one of attached) list.append(rowOf(one));
document.addEventListener("conversation-begun", () => {
  list.replaceChildren();
  save([]);
});

/** Take files in; the next questions are asked of them. Ends when they are in the list, on their way. */
export async function attach(files) {
  if (!mayWrite(await whoAmI())) return messages.replaceChildren(notice("warn", el("p", { role: "alert" }, t("error_not_permitted"))));
  await trying(messages, async () => {
    const corpus = await ownCorpus();
    await idOf(corpus);
    // In a folder of their own: a file of the same name that is there already must stay.
    const folder = `questions/${new Date().toISOString().slice(0, 19).replaceAll(":", ".")}`;
    const uploads = files.map((file) => uploadOf(file, { corpus: () => corpus.id, path: `${folder}/${file.name}`, ttlSeconds: UNKEPT }));
    send(uploads);
  });
}

async function send(uploads) {
  for (const upload of uploads) await upload.run();
}

function uploadOf(file, target) {
  const upload = new Upload(file, { ...target, ended: () => settle(upload, file) }, (again) => (again.wait(), again.run()));
  list.append(upload.element);
  return upload;
}

async function settle(upload, { name }) {
  if (!upload.element.isConnected) return; // another conversation has begun
  if (upload.outcome === "done") {
    const one = { id: upload.documentId, name, isKept: false };
    upload.element.replaceWith(rowOf(one));
    if (chosenAgent()) await chooseAgent(null); // an agent answers from its own corpora
    ask([...attached, one]);
    announce(t("attached_ready", { name }));
  } else if (upload.outcome === "cancelled") upload.element.remove();
  else upload.element.append(removeButton(name, () => upload.element.remove()));
  document.dispatchEvent(new CustomEvent("attached", { detail: upload.outcome }));
}

/** A file that questions are asked of. */
function rowOf(one) {
  const state = el("span", { className: "muted" });
  const tell = () => (state.textContent = t(one.isKept ? "attached_kept" : "attached_unkept"));
  const keep = el("input", { type: "checkbox", checked: one.isKept, "aria-label": t("attached_keep_named", { name: upright(one.name) }) });
  keep.addEventListener("change", () =>
    trying(messages, async () => {
      await change("PATCH", `/documents/${one.id}`, { ttlSeconds: keep.checked ? null : UNKEPT });
      one.isKept = keep.checked;
      save(attached);
      tell();
    }).then(() => (keep.checked = one.isKept)),
  );
  tell();
  const remove = removeButton(one.name, () =>
    trying(messages, async () => {
      if (!one.isKept) await erase(`/documents/${one.id}`);
      row.remove();
      ask(attached.filter((other) => other !== one));
      byId("question").focus();
    }),
  );
  const label = el("label", { className: "check" }, keep, t("attached_keep"));
  const row = el("li", { className: "attached-file" }, icon(iconOf(one.name)), el("bdi", {}, upright(one.name)), state, label, remove);
  return row;
}

function removeButton(name, onclick) {
  const words = t("attached_remove");
  return el("button", { type: "button", className: "icon-button", title: words, onclick }, icon("close"), hidden(`${words}: ${upright(name)}`));
}

function ask(files) {
  save(files);
  scopeTo({ documents: files.map(({ id, name }) => ({ id, name })) });
}

function save(files) {
  attached = files;
  write(ATTACHED, JSON.stringify(files));
}
