// The words of the page. They come inside the page, so that an error can be told when the server is gone.

import { byId } from "./dom.js";

const strings = JSON.parse(byId("strings").content.textContent);
export const language = document.documentElement.lang;
/** How numbers and dates are written: as the reader's own country does, where its language is that of the page. */
export const locale = navigator.languages.find((one) => one.split("-")[0] === language) ?? language;
const plural = new Intl.PluralRules(language);

/**
 * The words for `key`; `{name}` is filled from `values`. A `count` chooses between `key_one` and `key_other`.
 *
 * @param {string} key
 * @param {Record<string, any>} values
 * @returns {string}
 */
export function t(key, values = {}) {
  let words = strings[key];
  if ("count" in values) {
    const category = plural.select(values.count) === "one" ? "one" : "other";
    words = strings[`${key}_${category}`] ?? words;
  }
  if (words === undefined) throw new Error(`no words for ${key}`);
  return words.replace(/\{(\w+)\}/g, (_, name) => format(values[name]));
}

/** Sentences of the service that stand in answers, in all languages; `{names}` stands for any names. */
export const notes = strings["notes"];

export const knows = (key) => key in strings;

const format = (value) => (typeof value === "number" ? whole(value) : upright(String(value)));

/** A name without the characters that turn the direction of what follows it (UAX #9), and without marks that are piled up on
 * a letter over the lines above and below; CSS alone cannot contain them. */
export const upright = (name) => name.replace(/[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, "").replace(PILED, "$1");

const PILED = /(\p{Mn}{4})\p{Mn}+/gu; // no language has more on one letter

/** A text for a search: case, accents and kinds of space make no difference. It is as long as it was. */
export const fold = (text) =>
  text.replace(/\s/g, " ").replace(/\p{L}/gu, (letter) => {
    const plain = letter.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase();
    return plain.length === letter.length ? plain : letter;
  });

export const whole = (value) => new Intl.NumberFormat(locale).format(value);

export const decimal = (value) =>
  new Intl.NumberFormat(locale, { minimumFractionDigits: 2, maximumFractionDigits: 2 }).format(value);

export const percent = (share) => new Intl.NumberFormat(locale, { style: "percent" }).format(share);

/** Milliseconds in words: "320 ms", "4.2 s". */
export function duration(milliseconds) {
  if (milliseconds < 1000) return t("milliseconds", { value: Math.round(milliseconds) });
  return t("seconds", { value: Math.round(milliseconds / 100) / 10 });
}

export function fileSize(bytes) {
  const [amount, unit] = bytes < 1e6 ? [Math.max(1, Math.round(bytes / 1e3)), "kilobyte"] : [bytes / 1e6, "megabyte"];
  return new Intl.NumberFormat(locale, { style: "unit", unit, maximumFractionDigits: 1 }).format(amount);
}
