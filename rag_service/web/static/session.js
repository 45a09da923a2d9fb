// Who uses the page. Where the service wants to know: a session, whose cookie scripts cannot read, or a key or token
// that is kept in this tab's sessionStorage. Where it does not, everybody is the one local administrator.

import { read, write } from "./storage.js";

const CREDENTIAL = "rag_credential";
const USER = "rag_user";
const TOKEN = /(?:^|; )(?:__Host-|__Secure-)?rag_csrf=(\w+)/;
/** What of the storage is the session's. */
export const SESSION = [CREDENTIAL, USER];
const { auth, signIn, sharing } = document.documentElement.dataset;
export const isRequired = auth === "required";
/** How people sign in besides with a key: "provider", "password" or "". */
export const way = signIn ?? "";
/** Whether conversations can be shared. */
export const canShare = sharing !== undefined;

let credential = isRequired ? read(CREDENTIAL) : null;
// The session's token, as it was when this page began: under somebody else's session the page is refused.
let token = null;
let tell;
const signedIn = new Promise((resolve) => (tell = resolve));

/** Take the browser's session, if it has one, instead of a key. */
export function takeSession() {
  token = way ? (TOKEN.exec(document.cookie)?.[1] ?? null) : null;
  credential = token ? null : credential;
}
if (credential === null) takeSession();

export const hasSession = () => token !== null;
export const hasCredential = () => credential !== null || hasSession();

/** Headers that prove who asks. @param candidate a key or token to try, instead of what is in use */
export function authorization(candidate = credential) {
  if (candidate) return { Authorization: `Bearer ${candidate}` };
  return token ? { "X-CSRF-Token": token } : {};
}

/** Take a credential that has proved good; null is the session. Returns whether this tab was another user's before. */
export function keep(candidate, user) {
  const before = read(USER);
  credential = candidate;
  if (candidate) token = null;
  write(CREDENTIAL, candidate);
  write(USER, user.id);
  tell(user);
  return before !== null && before !== user.id;
}

export function drop() {
  credential = null;
  token = null;
  write(CREDENTIAL, null);
  write(USER, null);
}

/** The service has refused the credential: somebody must sign in again. */
export function expire() {
  if (isRequired) document.dispatchEvent(new Event("session-expired"));
}

let asked = null;

/** The user, {id, name, role, scopes}; waits for a sign-in where one is needed. @param ask fetches it */
export function whoAmI(ask) {
  if (isRequired) return signedIn;
  asked ??= ask().catch((error) => {
    asked = null; // may go better the next time
    throw error;
  });
  return asked;
}

/** Whether role and credential of a user suffice to administer. */
export const isAdministrator = (user) => user.role === "admin" && user.scopes.includes("admin");
export const mayWrite = (user) => user.scopes.includes("write");
