// Sessions: signing in with the provider or a password, and out in all tabs. Loaded where people have accounts.

import { change } from "./api.js";
import { byId, el } from "./dom.js";
import { t } from "./i18n.js";
import { notice } from "./notice.js";
import { hasSession, takeSession } from "./session.js";
import { read, write } from "./storage.js";

const PLACE = "rag_place"; // where the visitor was before going to the provider
const INVITATION = /^#invitation=([\w-]+)$/;
const OUTCOMES = ["refused", "not_permitted", "unavailable"];

/**
 * @param tell shows an error, or words where what was typed is wrong
 * @param tryIt signs in with a credential; null is the session
 * @param leave clears the page
 */
export function startAccounts({ dialog, tell, tryIt, leave }) {
  const others = new BroadcastChannel(`${location.pathname}rag_session`); // tabs with the same session
  const password = byId("password");
  const name = byId("account-name");
  const outcome = takeOutcome();
  let invitation = password && takeInvitation();

  /** With an invitation, for a new password alone. */
  function chooseForm() {
    if (!password) return;
    byId("name-field").hidden = Boolean(invitation);
    name.required = !invitation;
    password.autocomplete = invitation ? "new-password" : "current-password";
    password.minLength = invitation ? 12 : 1;
    byId("password-hint").hidden = !invitation;
  }

  byId("password-form")?.addEventListener("submit", async (event) => {
    event.preventDefault();
    const body = { password: password.value };
    password.value = "";
    dialog.setAttribute("aria-busy", "true");
    try {
      if (invitation) await change("POST", "/session/invitation", { invitation, ...body });
      else await change("POST", "/session", { name: name.value, ...body });
    } catch (error) {
      tell(error, invitation ? "invitation_refused" : "password_refused");
      return;
    } finally {
      dialog.setAttribute("aria-busy", "false");
    }
    invitation = null;
    chooseForm();
    takeSession();
    await tryIt(null, true);
    others.postMessage("begun");
  });
  byId("to-provider")?.addEventListener("click", () => write(PLACE, location.hash || null));
  others.addEventListener("message", ({ data }) => {
    if (data === "over" && hasSession()) leave();
    if (data !== "begun" || !dialog.open) return;
    takeSession();
    if (hasSession()) tryIt(null, false);
  });
  chooseForm();
  return {
    isInvited: () => Boolean(invitation),
    outcome: outcome && notice("error", el("p", {}, t(`sign_in_outcome_${outcome}`))),
    focus: () => (invitation ? password : (name ?? byId("to-provider"))).focus(),
    returnToPlace() {
      const place = read(PLACE);
      write(PLACE, null);
      if (place) location.hash = place;
    },
    async end() {
      await change("DELETE", "/session");
      others.postMessage("over");
    },
  };
}

/** How the way to the provider ended, if it did not end well. */
function takeOutcome() {
  const outcome = new URLSearchParams(location.search).get("sign_in");
  if (outcome) history.replaceState(null, "", location.pathname + location.hash);
  return OUTCOMES.find((one) => one === outcome);
}

/** The invitation in the address, which it leaves at once. */
function takeInvitation() {
  const found = INVITATION.exec(location.hash)?.[1];
  if (found) history.replaceState(null, "", location.pathname);
  return found;
}
