// What an answer rests on: decision, confidence and its parts, time, and every passage with its relevance.

import { el, icon } from "./dom.js";
import { decimal, duration, t, upright, whole } from "./i18n.js";
import { iconOf, sourcePlace } from "./places.js";
import { summarize } from "./proof.js";

/** The disclosure "Why this answer". @param final the body of the `final` event */
export function makeWhy(final) {
  const parts = final.confidenceParts;
  const facts = [
    [t("why_decision"), t(`decision_${final.decision}`)],
    // A high number beside "uncertain" would contradict it: how sure the passages make us is not all that counts.
    final.decision === "can_proceed" && [t("why_confidence"), meter(final.confidence)],
    [t("why_relevance"), decimal(parts.meanRelevance)],
    parts.meanRerank !== null && [t("why_rerank"), decimal(parts.meanRerank)],
    [t("why_time"), duration(final.latencyMs)],
    [t("why_model"), final.model],
    [t("why_tokens"), `${whole(final.promptTokens)} + ${whole(final.completionTokens)}`],
  ].filter(Boolean);
  return el(
    "details",
    { className: "why" },
    el("summary", {}, icon("chevron"), t("why")),
    reasonsOf(final).length ? el("h3", {}, t("why_reasons")) : null,
    reasonsOf(final).length ? el("ul", { className: "reasons" }, ...reasonsOf(final).map((one) => el("li", {}, one))) : null,
    el("dl", { className: "facts" }, ...facts.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value)))),
    parts.criticalBoost ? el("p", { className: "muted" }, t("why_boost")) : null,
    final.sources.length ? el("h3", {}, t("why_passages")) : null,
    final.sources.length ? el("ol", { className: "passages" }, ...final.sources.map((one) => passage(one, final))) : null,
  );
}

/** Why an answer is not one that can proceed, what weighs most first, in the language of the page. */
function reasonsOf({ reasons }) {
  return (reasons ?? []).map(({ code }) => t(`reason_${code}`));
}

function passage(source, final) {
  const shown = final.contextUsed.find(
    (one) => one.documentId === source.documentId && one.chunkIndex === source.chunkIndex,
  );
  return el(
    "li",
    {},
    el("div", { className: "passage-head" }, icon(iconOf(source.fileName)), el("span", {}, sourcePlace(source)), meter(source.score)),
    el("p", { className: "muted" }, upright(source.title ?? ""), shown ? ` · ${t("why_shown", { mark: shown.mark })}` : null),
    shown ? el("p", { className: "snippet" }, shown.snippet) : null,
  );
}

/** A figure from 0 to 1 as bar and number. */
function meter(value) {
  return el(
    "span",
    { className: "score" },
    el("meter", { min: 0, max: 1, value, "aria-label": t("why_score") }),
    el("span", {}, decimal(value)),
  );
}

/** What was searched for in place of a follow-up question, or null. */
export function makeSearched({ searchedFor }) {
  if (!searchedFor) return null;
  return el("p", { className: "muted" }, t("searched_for", { question: searchedFor.replaceAll("\n", " ") }));
}

/** What the answer is worth, in one line. @param isProved every sentence stands where it says */
export function makeDecision(final, isProved) {
  const shape = { can_proceed: isProved ? "verified" : "misattributed", uncertain: "misattributed", out_of_scope: "info" };
  const words = final.ragUsed === false ? "decision_without_documents" : `decision_${final.decision}`;
  const figures = [summarize(final.citations), duration(final.latencyMs)].filter(Boolean);
  return el(
    "p",
    { className: `decision decision-${final.decision}` },
    icon(shape[final.decision], `is-${shape[final.decision]}`),
    words === "decision_uncertain" ? `${t(words)}. ${reasonsOf(final)[0] ?? ""}` : t(words),
    el("span", { className: "muted" }, ` · ${figures.join(" · ")}`),
  );
}
