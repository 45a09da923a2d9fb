// Values kept in this tab: they survive errors, a reload and a change of the language, and go with the tab.

export const ATTACHED = "rag_attached"; // files that come with the question
let isOpen = true;
const BELOW = location.pathname.slice(1); // other services of this host keep theirs

/** Forget all values but some, and take nothing more: an answer may still be on its way. */
export function close(kept) {
  isOpen = false;
  const spared = kept.map((key) => BELOW + key);
  try {
    for (const key of Object.keys(sessionStorage)) if (key.startsWith(BELOW) && !spared.includes(key)) sessionStorage.removeItem(key);
  } catch {
    // forbidden: then nothing was kept
  }
}

/** Whether it was kept: storage may be full or forbidden, and the page works on without. */
export function write(key, value) {
  if (!isOpen) return false;
  try {
    if (value === null) sessionStorage.removeItem(BELOW + key);
    else sessionStorage.setItem(BELOW + key, value);
    return true;
  } catch {
    return false;
  }
}

export function read(key) {
  try {
    return sessionStorage.getItem(BELOW + key);
  } catch {
    return null;
  }
}
