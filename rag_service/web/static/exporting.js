// Answers and conversations as Markdown, with places and proof; what no source says is told with them.

import { read, saveAs } from "./api.js";
import { pair } from "./conversation.js";
import { copyText } from "./copying.js";
import { formDialog } from "./dialogs.js";
import { tell } from "./dom.js";
import { Evidence, findUnproved } from "./evidence.js";
import { t } from "./i18n.js";
import { fullPlace } from "./places.js";
import { differenceOf, proofWords } from "./proof.js";
import { makeVerdict } from "./why.js";

const PER_FETCH = 500; // messages; as many as the API gives at once

/** Text of documents and people as one line that is no markup. */
const line = (text) => text.replace(/\s+/g, " ").trim().replace(/[<\\`*_[\]#]/g, "\\$&");

/** A question, its answer with the verdict, and one line for each place that was cited, and for each sentence without one. */
export function answerMarkdown(question, text, evidence, verdict = "") {
  const cited = evidence.citations.map((citation) => {
    const where = [evidence.nameOf(citation), fullPlace(citation.location)].filter(Boolean).join(", ");
    const change = evidence.changeOf(citation);
    const proof = [[proofWords(citation), differenceOf(citation)].filter(Boolean).join(": "), change && t(`since_${change}`)].filter(Boolean).join(", ");
    const words = citation.evidence?.length ? citation.evidence : citation.quote ? [citation] : [];
    const quotes = words.map(({ quote }) => `“${line(quote)}”`).join(" … ");
    return [`- \\[C${citation.mark}\\]`, line(where), quotes, `(${line(proof)})`].filter(Boolean).join(" ");
  });
  const { placed, flagged } = evidence.placeIn(text);
  const bare = findUnproved(placed, flagged).filter(({ kind }) => kind === "unmarked");
  const lines = [...new Set([...cited, ...bare.map(({ start, end }) => `- “${line(text.slice(start, end))}” ${t("flag_unmarked")}`)])];
  const parts = [`## ${line(question)}`, text.trim().replaceAll("<", "\\<"), verdict && `**${line(verdict)}**`, lines.length && `${t("sources")}:\n\n${lines.join("\n")}`];
  return `${parts.filter(Boolean).join("\n\n")}\n`;
}

/** Give Markdown to the visitor as a file. */
export const saveMarkdown = (markdown, title) => saveAs(new Blob([markdown], { type: "text/markdown" }), `${fileName(title)}.md`);

const fileName = (title) => title.replace(/[^\p{L}\p{N} _-]+/gu, "").trim().slice(0, 60) || "conversation"; // what any system takes

/** Have a kept conversation copied or saved, as the visitor chooses. */
export async function exportConversation(id, title) {
  await formDialog({
    title: t("export_named", { name: title }),
    fields: [{ name: "format", type: "select", label: t("export_format"), value: "md", options: [["md", "Markdown"], ["copy", t("export_copy")], ["json", "JSON"]] }],
    action: t("export"),
    save: async ({ format }) => {
      const all = await readAll(id);
      if (format === "json") saveAs(new Blob([JSON.stringify(all, null, 2)], { type: "application/json" }), `${fileName(title)}.json`);
      else if (format === "md") saveMarkdown(asMarkdown(all), title);
      else tell(t((await copyText(asMarkdown(all))) ? "copied" : "copy_failed"));
    },
  });
}

/** All answers as they are copied one by one, in the words of the page. The API's own export names codes, in English. */
function asMarkdown({ title, messages }) {
  const answers = pair(messages).map(({ question, text, final, ...kept }) => {
    const evidence = Object.assign(new Evidence(), kept.evidence);
    const { placed, flagged } = evidence.placeIn(text);
    const verdict = final && makeVerdict(final, !findUnproved(placed, flagged).length, evidence.changes);
    return answerMarkdown(question, text, evidence, verdict?.textContent);
  });
  return [`# ${line(title)}\n`, ...answers].join("\n");
}

async function readAll(id) {
  const path = `/conversations/${encodeURIComponent(id)}`;
  const [conversation, messages] = [await read(path), []];
  for (;;) {
    const { items, total } = await read(`${path}/messages`, { offset: messages.length, limit: PER_FETCH });
    messages.push(...items);
    if (!items.length || messages.length >= total) break;
  }
  return { ...conversation, messages };
}
