// Values kept in this tab: they survive errors, a reload and a change of the language, and go with the tab.

/** Whether it was kept: storage may be full or forbidden, and the page works on without. */
export function write(key, value) {
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
