// How long documents are kept, in the steps that people think in.

import { t } from "./i18n.js";

const HOUR = 3600;
const DAY = 24 * HOUR;
/** @type {[number, string, number][]} */
const STEPS = [
  [HOUR, "lifetime_hours", 1],
  [DAY, "lifetime_hours", 24],
  [7 * DAY, "lifetime_days", 7],
  [30 * DAY, "lifetime_days", 30],
  [365 * DAY, "lifetime_days", 365],
];

/** Seconds in words; null is for ever. */
export function lifetime(seconds) {
  if (seconds === null) return t("lifetime_forever");
  if (seconds % DAY === 0 && seconds > DAY) return t("lifetime_days", { count: seconds / DAY });
  return t("lifetime_hours", { count: Math.max(1, Math.round(seconds / HOUR)) });
}

/** A field of `formDialog` for it. @param present seconds that stand now; kept as a choice of their own */
export function lifetimeField(label, present = null, hint = null) {
  const options = STEPS.map(([seconds, key, count]) => [String(seconds), t(key, { count })]);
  const isStep = present === null || STEPS.some(([seconds]) => seconds === present);
  if (!isStep) options.unshift([String(present), lifetime(present)]);
  return {
    name: "ttlSeconds", type: "select", label, hint, value: present === null ? "" : String(present),
    options: [["", t("lifetime_forever")], ...options],
  };
}

/** What the field's value means to the API. */
export const toSeconds = (value) => (value === "" ? null : Number(value));
