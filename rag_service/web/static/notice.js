// Something went wrong: what happened, what to do, and what the service itself says about it.

import { el, icon } from "./dom.js";
import { knows, t } from "./i18n.js";

const SPOKEN = new Set([
  "conflict", "invalid_input", "too_large", "unsupported_media_type", "unreadable_document", "internal_error",
]);

/**
 * @param error an ApiError
 * @param actions buttons that help
 */
export function errorNotice(error, ...actions) {
  const { problem } = error;
  const key = knows(`error_${error.code}`) ? `error_${error.code}` : "error_internal_error";
  const translated = key === `error_${error.code}`;
  const wait = problem.retryAfter ? ` ${t("retry_after", { seconds: problem.retryAfter })}` : "";
  return notice(
    "error",
    el("p", { className: "notice-title" }, t(key)),
    problem.explanation ? el("p", {}, problem.explanation) : null,
    el("p", {}, t(`${key}_help`) + wait),
    details(problem, !translated || SPOKEN.has(error.code)),
    actions.length ? el("p", { className: "notice-actions" }, ...actions) : null,
  );
}

/** @param kind error, warn or info */
export function notice(kind, ...children) {
  const role = kind === "error" ? "alert" : null;
  return el("div", { className: `notice notice-${kind}`, role }, icon(kind === "info" ? "info" : "alert"),
    el("div", { className: "notice-body" }, ...children));
}

/** The service's own words, which are English and name what is wrong; open where they tell more than ours. */
function details(problem, open) {
  if (!problem.detail) return null;
  const words = [problem.detail, problem.help].filter(Boolean).join(" ");
  const reference = problem.correlationId
    ? el("p", {}, `${t("reference")}: `, el("code", {}, problem.correlationId))
    : null;
  return el("details", { open }, el("summary", {}, t("details")), el("p", { lang: "en" }, words), reference);
}
