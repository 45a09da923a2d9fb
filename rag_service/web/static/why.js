// What an answer rests on: decision, confidence and its parts, time, and every passage with its relevance.

import { el, icon } from "./dom.js";
import { decimal, duration, t, upright, whole } from "./i18n.js";
import { iconOf, sourcePlace } from "./places.js";
import { differenceOf, proofOf, summarize } from "./proof.js";

const SMALL_TALK = "small-talk"; // the `model` of a reply to "hello" or "thanks"
const NOWHERE = new Set(["no_documents", "nothing_selected"]); // reasons: nothing was there to search
const OF_SENTENCES = new Set(["contradicted", "unproved"]); // reasons that the marked sentences show
const WAYS = new Set(["quote", "computed"]); // of proof that have a verdict of their own

/** The disclosure "Why this answer". @param final the body of the `final` event */
export function makeWhy(final) {
  const parts = final.confidenceParts;
  const facts = [
    final.model !== SMALL_TALK && [t("why_decision"), verdictOf(final)[0]],
    final.citations.length > 0 && [t("why_proof"), summarize(final.citations)],
    // A high number beside "uncertain" would contradict it: how sure the passages make us is not all that counts.
    final.decision === "can_proceed" && [t("why_confidence"), meter(final.confidence)],
    [t("why_time"), duration(final.latencyMs)],
    [t("why_relevance"), decimal(parts.meanRelevance), "for-operators"],
    parts.meanRerank !== null && [t("why_rerank"), decimal(parts.meanRerank), "for-operators"],
    [t("why_model"), final.model, "for-operators"],
    usedModel(final) && [t("why_tokens"), `${whole(final.promptTokens)} + ${whole(final.completionTokens)}`, "for-operators"],
  ].filter(Boolean);
  return el(
    "details",
    { className: "why" },
    el("summary", {}, icon("chevron"), t("why")),
    reasonsOf(final).length ? el("h3", {}, t("why_reasons")) : null,
    reasonsOf(final).length ? el("ul", { className: "reasons" }, ...reasonsOf(final).map((one) => el("li", {}, one))) : null,
    el("dl", { className: "facts" }, ...facts.map(([name, value, className]) => el("div", { className }, el("dt", {}, name), el("dd", {}, value)))),
    parts.criticalBoost ? el("p", { className: "muted for-operators" }, t("why_boost")) : null,
    final.sources.length ? el("h3", {}, t("why_passages")) : null,
    final.sources.length ? el("ol", { className: "passages" }, ...bestFirst(final.sources).map((one) => passage(one, final))) : null,
  );
}

/** Why an answer is not one that can proceed, what weighs most first, in the language of the page. */
function reasonsOf({ reasons }) {
  return (reasons ?? []).map(({ code }) => t(`reason_${code}`));
}

/** The service keeps the passages of one document together. */
const bestFirst = (sources) => [...sources].sort((one, two) => two.score - one.score);

const usedModel = ({ promptTokens }) => promptTokens > 0;

function passage(source, final) {
  const shown = final.contextUsed.find(
    (one) => one.documentId === source.documentId && one.chunkIndex === source.chunkIndex,
  );
  return el(
    "li",
    {},
    el("div", { className: "passage-head" }, icon(iconOf(source.fileName)), linkTo(source), meter(source.score)),
    el("p", { className: "muted" }, upright(source.title ?? ""), shown && usedModel(final) ? ` · ${t("why_shown", { mark: shown.mark })}` : null, fromTurn(shown)),
    shown ? el("p", { className: "snippet", lang: source.language }, shown.snippet) : null,
  );
}

/** Which earlier answer brought a passage; null: it was found for this question. */
const fromTurn = (shown) => (shown?.fromTurn ? ` · ${t("why_earlier", { number: whole(shown.fromTurn) })}` : null);

/** The place of a passage; it opens the document there. */
function linkTo(source) {
  const { documentId, fileName, title, location, chunkId } = source;
  const place = location?.page ? location : null;
  const open = async ({ currentTarget }) =>
    (await import("./panel.js")).panel().openDocument({ id: documentId, name: fileName ?? title, contentHash: null, location: place, chunkId }, currentTarget);
  return el("span", {}, el("button", { type: "button", className: "link", onclick: open }, sourcePlace(source)));
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

/**
 * What the answer is worth, in one line; null for small talk.
 *
 * @param isProved every sentence stands where it says
 * @param changes what has become of the cited documents since, by id
 * @param lead called with the citation that differs, or undefined, when the reader wants to see the sentence at fault
 */
export function makeVerdict(final, isProved, changes = {}, lead = null) {
  if (final.model === SMALL_TALK) return null;
  const shape = { can_proceed: isProved ? "verified" : "misattributed", uncertain: "misattributed", out_of_scope: "info" };
  const [words, told, differing] = verdictOf(final);
  const leads = lead && !isProved && (differing || OF_SENTENCES.has(final.reasons?.[0]?.code));
  const reason = told && leads ? el("button", { type: "button", className: "link", onclick: () => lead(differing) }, told) : told;
  const since = ["gone", "changed"].filter((one) => Object.values(changes).includes(one)).map((one) => t(`sources_${one}`));
  const sign = since.length || final.kind === "places" ? "info" : shape[final.decision];
  return el(
    "p",
    { className: `decision decision-${final.decision}` },
    icon(sign, `is-${sign}`),
    el("strong", {}, since.length && !words.endsWith(".") ? `${words}.` : words),
    ...[reason, ...since].filter(Boolean).flatMap((one) => [" ", one]),
  );
}

/** The verdict, its reason, and the citation whose source says otherwise. */
function verdictOf(final) {
  if (final.ragUsed === false) return [t(`rag_${final.contextUse}`), null];
  if (final.kind === "places") return [t("decision_places"), null];
  if (final.decision === "uncertain") {
    const differing = final.citations.find(differenceOf);
    return [t("decision_uncertain"), [reasonsOf(final)[0], differing && differenceOf(differing)].filter(Boolean).join(" "), differing];
  }
  if (final.decision === "out_of_scope") return [t(final.reasons?.some(({ code }) => NOWHERE.has(code)) ? "decision_nowhere" : "decision_out_of_scope"), null];
  const ways = new Set(final.citations.map(proofOf));
  return [t(ways.size === 1 && WAYS.has([...ways][0]) ? `decision_${[...ways][0]}` : "decision_can_proceed"), null];
}
