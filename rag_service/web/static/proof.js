// How far a citation proves its sentence, in colour, shape and words: green for proof and how it was done, grey for
// other words that nobody checked, amber for another passage, red where the source does not say it.

import { el, icon } from "./dom.js";
import { t } from "./i18n.js";

const IS_CELL = /^[A-Z]{1,3}\d+$/; // the figure itself: nothing was done with it
const ORDER = ["quote", "judge", "computed", "unchecked", "misattributed", "contradicted", "not_found"];

/** The name of a citation's proof: the method where it is verified, else the status. */
export const proofOf = ({ status, method }) => (status === "verified" ? (method ?? "quote") : status);

/** A few words: "exact quote". */
export const proofWords = (citation) => t(`proof_${proofOf(citation)}`, { judge: judgeOf([citation]) });

/** The proof of a citation as a line. */
export function proofLine(citation) {
  return line(proofOf(citation), citation.status, [citation]);
}

/** What a contradicted sentence and its source say, or how a figure was computed; null where there is no more. */
export function proofDetail({ status, reason, formula }) {
  if (formula && !IS_CELL.test(formula)) return el("p", { className: "muted" }, t("panel_computed", { formula }));
  const [, said, found] = (status === "contradicted" && /^\w+: (.+) \/ (.+)$/s.exec(reason ?? "")) || [];
  return said ? el("p", { className: "muted" }, t("difference", { said, found })) : null;
}

/** How many citations there are of each kind: "exact quote (2) · reworded (1)". */
export const summarize = (citations) =>
  present(citations)
    .map(([, of]) => `${proofWords(of[0])} (${of.length})`)
    .join(" · ");

/** What the signs of these citations mean, one line for each kind. */
export const legendOf = (citations) => present(citations).map(([name, of]) => line(name, of[0].status, of));

function present(citations) {
  const kinds = ORDER.map((name) => [name, citations.filter((citation) => proofOf(citation) === name)]);
  return kinds.filter(([, of]) => of.length);
}

function line(name, status, citations) {
  return el("p", { className: `status status-${status}` }, icon(status), t(`proof_${name}_long`, { judge: judgeOf(citations) }));
}

const judgeOf = (citations) => [...new Set(citations.map(({ judge }) => judge ?? t("judge_unnamed")))].join(", ");
