// Who uses the page. Where the service wants to know, the key or token is kept in this tab's sessionStorage
// and sent with every call; where it does not, everybody is the one local administrator.

import { read, write } from "./storage.js";

const CREDENTIAL = "rag_credential";
const USER = "rag_user";
export const isRequired = document.documentElement.dataset.auth === "required";

let credential = isRequired ? read(CREDENTIAL) : null;
let tell;
const signedIn = new Promise((resolve) => (tell = resolve));

export const hasCredential = () => credential !== null;

/** Headers that prove who asks. @param candidate a credential to try, instead of the one in use */
export function authorization(candidate = credential) {
  return candidate ? { Authorization: `Bearer ${candidate}` } : {};
}

/** Take a credential that has proved good. Returns whether this tab was another user's before. */
export function keep(candidate, user) {
  const before = read(USER);
  credential = candidate;
  write(CREDENTIAL, candidate);
  write(USER, user.id);
  tell(user);
  return before !== null && before !== user.id;
}

export function drop() {
  credential = null;
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
