// Values kept in this tab: they survive errors, a reload and a change of the language, and go with the tab.

export const ATTACHED = "rag_attached"; // files that come with the question
let isOpen = true;

/** Forget all values but some, and take nothing more: an answer may still be on its way. */
export function close(kept) {
  isOpen = false;
  try {
    for (const key of Object.keys(sessionStorage)) if (!kept.includes(key)) sessionStorage.removeItem(key);
  } catch {
    // forbidden: then nothing was kept
  }
}

/** Whether it was kept: storage may be full or forbidden, and the page works on without. */
export function write(key, value) {
  if (!isOpen) return false;
  try {
    if (value === null) sessionStorage.removeItem(key);
    else sessionStorage.setItem(key, value);
    return true;
  } catch {
    return false;
  }
}

export function read(key) {
  try {
    return sessionStorage.getItem(key);
  } catch {
    return null;
  }
}
