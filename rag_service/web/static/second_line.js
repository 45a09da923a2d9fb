// The second line under a sentence that a model wrote: the words of the passage that show it. Words that both have are
// bold; a figure that the passage has otherwise is struck through, with the passage's own behind it.

import { shorten } from "./badges.js";
import { el, hidden, icon } from "./dom.js";
import { doubtedFigure, plain } from "./evidence.js";
import { fold, t } from "./i18n.js";
import { proofOf } from "./proof.js";

const TOKEN = /\d+(?:[.,:'’]\d+|[ \u00a0\u202f]\d{3}(?!\d))*|[\p{L}\p{M}\p{N}]+/gu;
const BETWEEN_GROUPS = /[.,'’\s](?=\d{3}(?!\d))/g;
const SHORT = 4; // letters; shorter words, such as "of", are bold beside another one only
const AROUND = 2; // words on either side that tell which figure stands for which
const MOST = 600; // characters of one quote
const WRITTEN = new Set(["judge", "unchecked", "differs", "misattributed", "contradicted"]); // what is no quote

let count = 0;

/**
 * Words of passages beside a sentence: for each text its pieces [text, kind, said]. Kind: "same" for words that both have,
 * "right" for a figure of the passage where the sentence says `said`, else null.
 *
 * @param doubted what of the sentence stands in no text; null: any figure may differ
 */
export function compare(sentence, texts, doubted) {
  const said = readTokens(sentence);
  const found = texts.map(readTokens);
  const all = found.flat();
  const sayable = new Set(said.map(({ key }) => key));
  const shown = new Set(all.map(({ key }) => key));
  const wrong = (doubted === null ? said : readTokens(doubted)).filter(({ isFigure, key }) => isFigure && !shown.has(key));
  const right = new Set(all.filter(({ isFigure, key }) => isFigure && !sayable.has(key)));
  const corrected = new Map(); // token of a text → what the sentence says in its place
  for (const one of wrong) {
    const near = neighbours(said, said.find(({ key }) => key === one.key));
    const rated = [...right].map((other) => ({ other, score: neighbours(all, other).filter((key) => near.includes(key)).length }));
    rated.sort((a, b) => b.score - a.score);
    const isOnly = wrong.length === 1 && rated.length === 1;
    if (!rated.length || !(isOnly || rated[0].score > (rated[1]?.score ?? 0))) continue;
    corrected.set(rated[0].other, one.text);
    right.delete(rated[0].other);
  }
  return texts.map((text, i) => cut(text, found[i], sayable, corrected));
}

function readTokens(text) {
  return [...text.matchAll(TOKEN)].map(({ 0: word, index }) => {
    const isFigure = /^\d/.test(word);
    const key = isFigure ? word.replace(BETWEEN_GROUPS, "").replace(",", ".") : fold(word);
    return { text: word, start: index, end: index + word.length, isFigure, key };
  });
}

/** The words around a figure. */
function neighbours(tokens, token) {
  const at = tokens.indexOf(token);
  if (at < 0) return [];
  return tokens.slice(Math.max(0, at - AROUND), at + AROUND + 1).filter(({ isFigure }) => !isFigure).map(({ key }) => key);
}

function cut(text, tokens, sayable, corrected) {
  const isShared = (token) => token !== undefined && sayable.has(token.key);
  const isLong = (token) => corrected.has(token) || (isShared(token) && (token.isFigure || token.text.length >= SHORT));
  const pieces = [];
  const add = (words, kind, said = null) => {
    const last = pieces.at(-1);
    if (last && last[1] === kind && kind !== "right") last[0] += words;
    else if (words) pieces.push([words, kind, said]);
  };
  let end = 0;
  tokens.forEach((token, i) => {
    const isSame = isLong(token) || (isShared(token) && (isLong(tokens[i - 1]) || isLong(tokens[i + 1])));
    const kind = corrected.has(token) ? "right" : isSame ? "same" : null;
    add(text.slice(end, token.start), kind === "same" && pieces.at(-1)?.[1] === "same" ? "same" : null);
    add(token.text, kind, corrected.get(token));
    end = token.end;
  });
  add(text.slice(end), null);
  return pieces;
}

/**
 * The second line of one or more sentences; null where no words are known that are not the sentence itself.
 *
 * @param sentences each {sentence, citations}: its text in the answer, and all that it cites
 * @param languageOf a citation's document's language
 * @param isOpen whether it stands open; undefined: where the reader has to compare
 * @param onToggle called with whether the reader has opened it
 */
export function makeSecondLine(sentences, languageOf, isOpen, onToggle) {
  const rows = sentences.map(({ sentence, citations }) => makeRow(plain(sentence), citations, languageOf)).filter(Boolean);
  if (!rows.length) return null;
  const line = el("span", { id: `words-${(count += 1)}`, className: "second-line" }, ...rows);
  const toggle = el("button", { type: "button", className: "icon-button second-line-toggle", title: t("words"), "aria-controls": line.id }, icon("chevron"), hidden(t("words")));
  let isPreview = false;
  let isKept = isOpen ?? sentences.some(({ citations }) => hasToCompare(citations));
  const show = () => {
    line.hidden = !(isKept || isPreview);
    toggle.setAttribute("aria-expanded", String(!line.hidden));
  };
  const keep = (wanted) => {
    isKept = wanted;
    isPreview = false;
    show();
    onToggle(wanted);
  };
  toggle.addEventListener("click", () => keep(!isKept));
  show();
  return {
    line,
    toggle,
    open: () => keep(true),
    /** Show it while its badge is pointed at or has the focus. */
    preview(isShown) {
      isPreview = isShown;
      show();
      return line;
    },
    /** Whether a finger that taps the badge is served by the line: there is no pointing at it. */
    tap({ pointerType }) {
      if (pointerType !== "touch" || !line.hidden) return false;
      keep(true);
      return true;
    },
  };
}

/** Whether nobody has checked a sentence, or its source says something else. */
const hasToCompare = (citations) =>
  citations.some(({ status }) => status === "unchecked" || status === "contradicted") && citations.every(({ status }) => status !== "verified");

/** The words that show a sentence, or else all that it cites; null: there are none but its own. */
function makeRow(sentence, citations, languageOf) {
  const quotes = new Map(); // words → {language, title}; in the order of the citations
  const verified = citations.filter(({ status }) => status === "verified");
  for (const citation of (verified.length ? verified : citations).filter((one) => WRITTEN.has(proofOf(one)))) {
    const { against } = citation;
    const words = against ? [against] : citation.evidence?.length ? citation.evidence : [citation];
    for (const { quote, title } of words) {
      if (quote && !quotes.has(quote)) quotes.set(quote, { language: against ? null : languageOf(citation), title: against && title });
    }
  }
  if (!quotes.size) return null;
  const texts = [...quotes.keys()].map((quote) => shorten(plain(quote), MOST));
  const doubted = (!verified.length && citations.map(doubtedFigure).find(Boolean)) || "";
  const compared = compare(sentence, texts, !verified.length && citations.some(({ against }) => against) ? null : doubted);
  const isSet = compared.flat().some(([, kind]) => kind === "right");
  const shown = [...quotes.values()].flatMap(({ language, title }, i) => [
    i ? " … " : null,
    title ? `${title}: ` : null,
    el("span", { lang: language }, ...compared[i].flatMap(makePiece)),
  ]);
  const missing = doubted && !isSet ? el("span", { className: "is-missing" }, ` ${t("missing_in_passage", { said: doubted })}`) : null;
  return el("span", { className: "second-line-row" }, ...shown, missing);
}

function makePiece([text, kind, said]) {
  if (kind === "same") return [el("b", {}, text)];
  if (kind !== "right") return [text];
  return [el("del", {}, hidden(`${t("panel_cited")}: `), said), " ", el("ins", {}, hidden(`${t("panel_quote")}: `), text)];
}
