// Something went wrong: what happened, what to do, and what the service itself says about it.

import { el, icon } from "./dom.js";
import { knows, t } from "./i18n.js";
import { refusalWords } from "./refusal.js";

const SPOKEN = new Set([
  "conflict", "invalid_input", "no_text", "protected_document", "scanned_document", "too_large", "unsupported_media_type", "unreadable_document",
  "internal_error",
]);

/**
 * @param error an ApiError
 * @param actions buttons that help
 */
export function errorNotice(error, ...actions) {
  const { problem } = error;
  const { title, help, words, foreign } = refusalWords(problem);
  const wait = problem.retryAfter ? ` ${t("retry_after", { seconds: problem.retryAfter })}` : "";
  const open = SPOKEN.has(error.code) || !knows(`error_${error.code}`);
  return notice(
    "error",
    el("p", { className: "notice-title" }, title),
    problem.explanation ? el("p", {}, problem.explanation) : null,
    el("p", {}, help + wait),
    words ? details(problem, words, { open, foreign }) : null,
    actions.length ? el("p", { className: "notice-actions" }, ...actions) : null,
  );
}

/**
 * Run an action; what the API refuses is told in `messages`.
 *
 * @param listing of what the action is about: fetched anew where that was deleted meanwhile, in another tab
 */
export async function trying(messages, action, listing = null) {
  messages.replaceChildren();
  try {
    await action();
  } catch (error) {
    if (!error.problem) throw error;
    messages.replaceChildren(errorNotice(error));
    if (error.code === "not_found") await listing?.refresh();
  }
}

/** @param kind error, warn or info */
export function notice(kind, ...children) {
  const role = kind === "error" ? "alert" : null;
  return el("div", { className: `notice notice-${kind}`, role }, icon(kind === "info" ? "info" : "alert"),
    el("div", { className: "notice-body" }, ...children));
}

/** What the service adds; open where that tells more than our words. */
function details(problem, words, { open, foreign }) {
  const reference = problem.correlationId
    ? el("p", {}, `${t("reference")}: `, el("code", {}, problem.correlationId))
    : null;
  return el("details", { open }, el("summary", {}, t("details")), el("p", { lang: foreign ? "en" : null }, words), reference);
}
