// What the API says of a field, in the language of the page. Such sentences have no codes: those that people
// meet are known by their wording, and any other is shown as the API wrote it.

import { knows, language, t } from "./i18n.js";

/** @type {[RegExp, string][]} */
const USUAL = [
  [/^must not be empty$/, "fault_empty"],
  [/^is required$/, "fault_required"],
  [/^must have at most (?<most>\d+) characters/, "fault_characters"],
  [/^must have at most (?<most>\d+) items$/, "fault_items"],
  [/^must be (?:a whole number )?from (?<least>[\d.]+) to (?<most>[\d.]+)$/, "fault_range"],
  [/^must be in the future$/, "fault_future"],
  [/^must be a whole number\b/, "fault_whole"],
  [/^(?:An? \w+ named .*|A user with this \w+) already exists\.$/s, "fault_taken"],
];

// The same file is refused again.
const FINAL = new Set(["invalid_input", "no_text", "protected_document", "scanned_document", "too_large", "unreadable_document", "unsupported_media_type"]);

/** Whether what failed for a reason of this code may go well another time. */
export const mayGoWell = (code) => !FINAL.has(code);

/** Why something failed, by its code, where the API's English reason is foreign to the reader; else null. */
export const ownReason = (code) => (language !== "en" && knows(`error_${code}`) ? t(`error_${code}`) : null);

/** The sentence in the reader's language; null where only the API's own English can tell it. */
export function faultWords(message) {
  if (language === "en") return message;
  for (const [pattern, key] of USUAL) {
    const found = pattern.exec(message);
    if (found) return t(key, found.groups);
  }
  return null;
}

/**
 * A problem in words of the page.
 *
 * @returns `words` what the API adds, null when that is told already or nothing;
 *   `foreign` whether they are English on a page that is not
 */
export function refusalWords({ code, detail, help, errors = [] }) {
  const translated = knows(`error_${code}`);
  const key = translated ? `error_${code}` : "error_internal_error";
  const faults = errors.map(({ field, message }) => [field, faultWords(message)]);
  const own = language !== "en" && faults.length > 0 && faults.every(([, words]) => words !== null);
  const said = translated ? detail : [detail, help].filter(Boolean).join(" ");
  return {
    title: t(key),
    help: t(`${key}_help`),
    words: own ? faults.map(([field, words]) => `${field} : ${words}`).join(" ") : said || null,
    foreign: !own && language !== "en",
  };
}
