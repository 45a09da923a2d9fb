// A notification of the browser when something that took long is done and the visitor looks elsewhere. Off until it is
// switched on, and the browser allows it.

import { byId, el } from "./dom.js";
import { t } from "./i18n.js";
import { notice } from "./notice.js";

const SWITCH = "rag_notify"; // in localStorage: for all tabs, and until it is switched off
const LONG = 10_000; // milliseconds; a wait that nobody sits out

const isOn = () => isWanted() && Notification.permission === "granted";

function isWanted(changed = null) {
  try {
    if (changed !== null) localStorage.setItem(SWITCH, String(changed));
    return localStorage.getItem(SWITCH) === "true";
  } catch {
    return false; // storage is forbidden
  }
}

export function startNotify() {
  const button = byId("notify");
  button.hidden = !("Notification" in window);
  const show = () => button.setAttribute("aria-pressed", String(isOn()));
  button.addEventListener("click", async () => {
    const wanted = !isOn();
    const isAllowed = wanted && (await Notification.requestPermission()) === "granted";
    isWanted(isAllowed);
    if (wanted && !isAllowed) refuse();
    show();
  });
  if (!button.hidden) show();
}

/** Say that the browser does not allow it, until another view is opened. */
function refuse() {
  const told = notice("warn", el("p", { role: "alert" }, t("notify_refused")));
  byId("service-notice").replaceChildren(told);
  addEventListener("hashchange", () => told.remove(), { once: true });
}

/** Tell what is done. @param since when it began */
export function notifyDone(words, since) {
  if (byId("notify").hidden || !isOn() || Date.now() - since < LONG) return;
  if (document.visibilityState === "visible" && document.hasFocus()) return;
  try {
    const told = new Notification(document.title, { body: words, tag: SWITCH });
    told.addEventListener("click", () => (focus(), told.close()));
  } catch {
    // Android shows them for service workers only
  }
}
