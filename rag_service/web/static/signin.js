// The sign-in: a dialog over the whole page, so that whatever was going on below waits unharmed for its end.

import { tryCredential } from "./api.js";
import { announce, byId, el } from "./dom.js";
import { t } from "./i18n.js";
import { errorNotice, notice } from "./notice.js";
import { authorization, drop, hasCredential, hasSession, isRequired, keep, SESSION, way } from "./session.js";
import { close } from "./storage.js";

const PRINTABLE = /^[\x21-\x7e]+$/; // what a header may carry

export async function startSignIn() {
  if (!isRequired) return;
  const dialog = byId("sign-in");
  const form = byId("sign-in-form");
  const box = byId("credential");
  const messages = byId("sign-in-messages");
  let needed = true;
  let reason = null; // why the dialog is there, where it came unasked

  /** @param field where what is wrong was typed; null: nothing is */
  function show(message, field = null) {
    needed = true;
    messages.replaceChildren(...[reason, message].filter(Boolean));
    if (!dialog.open) dialog.showModal();
    for (const one of dialog.querySelectorAll("input")) one.ariaInvalid = one === field ? "true" : null;
    (field ?? accounts ?? box).focus();
  }

  /** @param refused words where what was typed is wrong; null: it was good once */
  function tell(error, refused, field = null) {
    if (!error.problem) throw error;
    show(refusal(error, refused), refused && field);
  }

  /** Try a credential; null is the session. @param typed whether it is new, and not kept from before a reload */
  async function tryIt(candidate, typed) {
    form.setAttribute("aria-busy", "true");
    try {
      const user = await tryCredential(candidate);
      const isAnother = keep(candidate, user);
      if (isAnother) return beginAnew(SESSION); // nothing of one user may show to the next
      needed = false;
      reason = null;
      box.value = "";
      byId("user-name").textContent = user.name;
      byId("account").hidden = false;
      messages.replaceChildren();
      if (dialog.open) dialog.close();
      if (typed) announce(t("signed_in", { name: user.name }));
      accounts?.returnToPlace();
    } catch (error) {
      tell(error, typed ? "sign_in_refused" : null, box);
    } finally {
      form.setAttribute("aria-busy", "false");
    }
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const candidate = box.value.trim().replace(/^bearer\s+/i, "");
    if (!candidate) show(notice("warn", el("p", {}, t("sign_in_empty"))), box);
    else if (!PRINTABLE.test(candidate)) show(notice("error", el("p", {}, t("sign_in_malformed"))), box);
    else tryIt(candidate, true);
  });
  dialog.addEventListener("cancel", (event) => event.preventDefault());
  dialog.addEventListener("close", () => needed && dialog.showModal()); // a second Escape closes all the same
  document.addEventListener("session-expired", () => {
    if (needed) return;
    // It stays: a key pressed for the page below, which the dialog has caught, must not wipe it away.
    reason = notice("warn", el("p", {}, t("sign_in_expired")));
    show();
  });
  byId("sign-out").addEventListener("click", async () => {
    try {
      if (hasSession()) await accounts.end();
    } catch (error) {
      if (!error.problem) throw error;
      if (error.code !== "not_authenticated") return byId("service-notice").replaceChildren(errorNotice(error));
    }
    leave();
  });
  addEventListener("pageshow", (event) => event.persisted && location.reload()); // Back, to a page that was kept whole

  const accounts = way ? (await import("./accounts.js")).startAccounts({ dialog, tell, tryIt, leave }) : null;
  if (accounts?.isInvited() || !hasCredential()) show(accounts?.outcome ?? null);
  else tryIt(authorization().Authorization?.replace("Bearer ", "") ?? null, false);
}

function leave() {
  drop();
  beginAnew([]);
}

/** Nothing of the user stays: not on the page, not in the tab's storage, not in the address, not on the way back. */
function beginAnew(kept) {
  close(kept);
  history.replaceState(null, "", location.pathname);
  document.body.hidden = true; // not emptied: what still runs here would stumble
  location.reload();
}

function refusal(error, refused) {
  if (error.code !== "not_authenticated") return errorNotice(error);
  return notice(refused ? "error" : "warn", el("p", {}, t(refused ?? "sign_in_expired")));
}
