// How far a citation proves its sentence, in colour, shape and words: green for proof and how it was done, grey for
// other words that nobody checked, amber for a figure that they do not have and for another passage, red where the source
// does not say it.

import { el, icon } from "./dom.js";
import { doubtedFigure } from "./evidence.js";
import { t } from "./i18n.js";

const IS_CELL = /^[A-Z]{1,3}\d+$/; // the figure itself: nothing was done with it
const ORDER = ["quote", "judge", "computed", "unchecked", "differs", "misattributed", "contradicted", "not_found"];

/** The name of a citation's proof: the method where it is verified, else the status, or `differs` for a figure in doubt. */
export const proofOf = (citation) => (citation.status === "verified" ? (citation.method ?? "quote") : shapeOf(citation));

const shapeOf = (citation) => (doubtedFigure(citation) ? "differs" : citation.status);

/** The sign of a citation. @param change what has become of its document since, as `Evidence.changeOf` has it */
export const signOf = (citation, change) => SINCE[change] ?? SIGNS[shapeOf(citation)] ?? citation.status;

/** A few words: "exact quote". */
export const proofWords = (citation) => t(`proof_${proofOf(citation)}`, { judge: judgeOf([citation]) });

/** The proof of a citation as a line. @param change what has become of its document since, as `Evidence.changeOf` has it */
export function proofLine(citation, change) {
  if (change) {
    const words = [t("proof_then", { proof: proofWords(citation) }), t(`since_${change}_long`)];
    return el("p", { className: `status ${toneOf(citation, change)}` }, icon(signOf(citation, change)), words.join(" "));
  }
  return line([citation]);
}

/** What was proved cannot be looked up any more: it is not shown as if it could. */
export const toneOf = (citation, change) => `status-${change && citation.status === "verified" ? "past" : shapeOf(citation)}`;

const SINCE = { gone: "trash", changed: "replace" };
const SIGNS = { differs: "alert" }; // the others have one by the name of their status

/** Why a sentence is not proved, or how a figure was computed; null where there is no more. */
export function proofDetail(citation) {
  const { formula } = citation;
  const words = formula && !IS_CELL.test(formula) ? t("panel_computed", { formula }) : differenceOf(citation);
  return words ? el("p", { className: "muted" }, words) : null;
}

/** What a sentence says and its passage does not: "$13.25 is not in the passage"; null where nothing was found. */
export function differenceOf({ missing, against }) {
  if (against) return t("source_says", { found: against.quote });
  return missing ? t("missing_in_passage", { said: missing }) : null;
}

/** How many citations there are of each kind: "exact quote (2) · reworded (1)". */
export const summarize = (citations) =>
  present(citations)
    .map(([, of]) => `${proofWords(of[0])} (${of.length})`)
    .join(" · ");

/** What the signs of citations mean that prove nothing, one line for each kind. */
export const legendOf = (citations) =>
  present(citations.filter(({ status }) => status !== "verified")).map(([, of]) => line(of));

function present(citations) {
  const kinds = ORDER.map((name) => [name, citations.filter((citation) => proofOf(citation) === name)]);
  return kinds.filter(([, of]) => of.length);
}

/** What citations of one kind prove. */
function line(citations) {
  const [first] = citations;
  return el("p", { className: `status ${toneOf(first)}` }, icon(signOf(first)), t(`proof_${proofOf(first)}_long`, { judge: judgeOf(citations) }));
}

const judgeOf = (citations) => [...new Set(citations.map(({ judge }) => judge ?? t("judge_unnamed")))].join(", ");
