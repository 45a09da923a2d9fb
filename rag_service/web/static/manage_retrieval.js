// What the search finds for a question, without an answer: every passage with its scores, and why one is refused.

import { change, read } from "./api.js";
import { titleOf } from "./corpora.js";
import { announce, el, icon } from "./dom.js";
import { decimal, duration, t } from "./i18n.js";
import { errorNotice } from "./notice.js";
import { iconOf, sourcePlace } from "./places.js";

const FOUND = 10; // passages; as many as RAG_TOPK_MAX gives where nobody has set it
const SCORES = ["relevance", "coverage", "bm25", "dense", "fused", "rerank"]; // those that people can compare, best known first

export async function makeList(section) {
  const question = el("input", { id: "retrieval-question", type: "search", required: true, maxLength: 2000, autocomplete: "off" });
  const corpus = el("select", { id: "retrieval-corpus" }, el("option", { value: "" }, t("retrieval_all")));
  const results = el("div", { "aria-live": "polite" });
  const field = (control, words) => el("div", { className: "field" }, el("label", { htmlFor: control.id }, words), control);
  const form = el("form", { className: "retrieval" }, field(question, t("question")), field(corpus, t("retrieval_corpus")),
    el("button", { type: "submit", className: "button primary" }, icon("search"), t("retrieval_run")));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    await show(results, { query: question.value.trim(), corpusIds: corpus.value ? [corpus.value] : [] });
  });
  section.replaceChildren(
    el("div", { className: "list-head" }, el("div", {}, el("h2", {}, t("manage_retrieval")), el("p", { className: "muted" }, t("retrieval_lead")))),
    form,
    results,
  );
  const { items: corpora } = await read("/corpora", { limit: 500 });
  corpus.append(...corpora.map((one) => el("option", { value: one.id }, titleOf(one))));
}

async function show(results, asked) {
  results.setAttribute("aria-busy", "true");
  try {
    const search = (more) => change("POST", "/query", { ...asked, topK: FOUND, ...more });
    const [all, accepted] = await Promise.all([search({ similarityThreshold: 0 }), search({})]);
    const passed = new Set(accepted.passages.map(idOf));
    const summary = t("retrieval_found", { count: all.passages.length, passed: passed.size, time: duration(all.latencyMs) });
    results.replaceChildren(
      el("p", { className: "muted" }, summary),
      el("ol", { className: "passages" }, ...all.passages.map((passage) => row(passage, passed.has(idOf(passage))))),
    );
    announce(summary);
  } catch (error) {
    if (!error.problem) throw error;
    results.replaceChildren(errorNotice(error));
  } finally {
    results.setAttribute("aria-busy", "false");
  }
}

const idOf = ({ documentId, start }) => `${documentId} ${start}`;

function row(passage, isPassed) {
  const scores = SCORES.filter((name) => typeof passage.scores[name] === "number");
  return el(
    "li",
    {},
    el("div", { className: "passage-head" }, icon(iconOf(passage.fileName)), el("span", {}, sourcePlace(passage)),
      el("span", { className: `chip chip-${isPassed ? "good" : "warn"}` }, t(isPassed ? "retrieval_passed" : "retrieval_refused"))),
    el("dl", { className: "facts" }, ...scores.map((name) => el("div", {}, el("dt", {}, t(`score_${name}`)), el("dd", {}, decimal(passage.scores[name]))))),
    el("p", { className: "snippet" }, passage.text),
  );
}
