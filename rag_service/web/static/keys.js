// Keys that work wherever nobody types; "?" lists all of them.

import { byId, el, isWithin } from "./dom.js";
import { t } from "./i18n.js";

const STEPS = { ArrowDown: 1, ArrowUp: -1 };
/** @type {[string[], string][]} */
const KEYS = [
  [["/"], "keys_question"],
  [["Enter"], "keys_send"],
  [["Shift", "Enter"], "keys_line"],
  [["↑"], "keys_last"],
  [["Alt", "↓"], "keys_next"],
  [["Alt", "↑"], "keys_previous"],
  [["Esc"], "keys_escape"],
  [["?"], "keys_help"],
];

export function startKeys() {
  byId("keys").addEventListener("click", showKeys);
  document.addEventListener("keydown", (event) => {
    if (document.querySelector("dialog:modal:not(#panel)")) return;
    const isTyping = isWithin(event.target, "input, textarea, select");
    if (event.key === "?" && !isTyping) showKeys();
    else if (event.altKey && event.key in STEPS && step(STEPS[event.key])) event.preventDefault();
  });
}

/** Go to the next citation, or the one before; where a source is open, it shows the new one. Whether there is one. */
function step(by) {
  const all = /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll(".turns .badge"));
  const badges = [...all].filter((badge) => badge.checkVisibility());
  const at = badges.findIndex((badge) => badge === document.activeElement || badge.ariaExpanded === "true");
  const first = badges.findIndex((badge) => badge.getBoundingClientRect().top > 0);
  const next = badges[at >= 0 ? at + by : by > 0 ? first : (first < 0 ? badges.length : first) - 1];
  if (!next) return false;
  next.scrollIntoView({ block: "nearest" });
  if (byId("panel").open) next.click();
  else next.focus();
  return true;
}

async function showKeys() {
  const { showDialog } = await import("./dialogs.js");
  const rows = KEYS.map(([keys, words]) => el("div", {}, el("dt", {}, ...keys.flatMap((key, i) => [i ? " + " : "", el("kbd", {}, key)])), el("dd", {}, t(words))));
  showDialog({ title: t("keys_title"), content: el("dl", { className: "keys-list" }, ...rows) });
}
