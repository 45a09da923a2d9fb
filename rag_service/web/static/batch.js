// Several documents at once: deleted or moved. What could not be done is told, by its reason.

import { ApiError, change } from "./api.js";
import { idOf, titleOf } from "./corpora.js";
import { confirmDialog, formDialog } from "./dialogs.js";
import { byId } from "./dom.js";
import { t } from "./i18n.js";
import { errorNotice } from "./notice.js";

/** Ask, and delete. Returns what to say of it; undefined when it was cancelled. */
export function deleteAll(documents) {
  const count = documents.length;
  return confirmDialog({
    title: t("delete_selected", { count }),
    text: t("delete_selected_text"),
    action: t("delete"),
    act: async () => t("deleted_selected", { count: await send(documents, { action: "delete" }) }),
  });
}

/** Ask where to, and move. @param corpora that may be written to @returns as `deleteAll` */
export function moveAll(documents, corpora) {
  const options = corpora.map((corpus, place) => [String(place), titleOf(corpus)]);
  return formDialog({
    title: t("move_selected", { count: documents.length }),
    text: t("move_text"),
    fields: [{ name: "corpusId", type: "select", label: t("move_to"), value: "0", options }],
    action: t("move"),
    save: async ({ corpusId: place }) => {
      const corpusId = await idOf(corpora[Number(place)]);
      return t("moved_selected", { count: await send(documents, { action: "move", corpusId }) });
    },
  });
}

/** How many were changed. */
async function send(documents, body) {
  const { items } = await change("POST", "/documents/batch", { ...body, documentIds: documents.map(({ id }) => id) });
  const names = new Map(documents.map(({ id, fileName, name }) => [id, fileName ?? name]));
  const failed = new Map(); // code → {problem, names}
  for (const { documentId, problem } of items) {
    if (!problem || (body.action === "delete" && problem.code === "not_found")) continue; // somebody else was quicker
    if (!failed.has(problem.code)) failed.set(problem.code, { problem, names: [] });
    failed.get(problem.code).names.push(names.get(documentId));
  }
  const tell = ({ problem, names: of }) =>
    errorNotice(new ApiError({ ...problem, explanation: t("batch_failed", { names: of.join(", ") }) }));
  byId("documents-messages").replaceChildren(...[...failed.values()].map(tell));
  return items.length - [...failed.values()].reduce((sum, { names: of }) => sum + of.length, 0);
}
