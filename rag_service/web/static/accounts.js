// Sessions: signing in with the provider or a password, and out in all tabs. Loaded where people have accounts.

import { change } from "./api.js";
import { byId, el } from "./dom.js";
import { t, upright } from "./i18n.js";
import { notice } from "./notice.js";
import { hasSession, takeSession } from "./session.js";
import { read, write } from "./storage.js";

const PLACE = "rag_place"; // where the visitor was before going to the provider
const INVITATION = /^#invitation=([\w-]+)(?:&name=(.+))?$/;
const OUTCOMES = ["refused", "not_permitted", "unavailable"];

/**
 * @param tell shows an error, or words where what was typed is wrong, and leads to the field
 * @param tryIt signs in with a credential; null is the session
 * @param leave clears the page
 */
export function startAccounts({ dialog, tell, tryIt, leave }) {
  const others = new BroadcastChannel(`${location.pathname}rag_session`); // tabs with the same session
  const password = byId("password");
  const name = byId("account-name");
  const outcome = takeOutcome();
  let invitation = password && takeInvitation();

  const usual = ["sign-in-title", "sign-in-lead", "password-send"].map(byId).map((element) => ({ element, words: element?.textContent }));

  /** With an invitation, for a new password alone. The name stays in the form: password managers keep it. */
  function chooseForm() {
    if (!password) return;
    const invited = invitation && [t("choose_password"), invitation.name && t("choose_password_for", { name: invitation.name }), t("choose_password_save")];
    for (const [i, { element, words }] of usual.entries()) element.textContent = invited ? invited[i] : words;
    for (const id of ["sign-in-key", "sign-in-help"]) byId(id).hidden = Boolean(invitation);
    byId("name-field").hidden = Boolean(invitation && !invitation.name);
    name.readOnly = Boolean(invitation);
    if (invitation) name.value = invitation.name;
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
      if (invitation) await change("POST", "/session/invitation", { invitation: invitation.token, ...body });
      else await change("POST", "/session", { name: name.value, ...body });
    } catch (error) {
      tell(error, invitation ? "invitation_refused" : "password_refused", password);
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
  const [whole, token, name = ""] = INVITATION.exec(location.hash) ?? [];
  if (!whole) return null;
  history.replaceState(null, "", location.pathname);
  return { token, name: upright(decodeURIComponent(name)) };
}
