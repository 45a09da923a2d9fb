// Light or dark: the system's choice until the visitor makes one. The cookie lets the server paint it at once.

import { byId } from "./dom.js";

const YEAR = 365 * 24 * 3600;
const system = matchMedia("(prefers-color-scheme: dark)");

export function startTheme() {
  const root = document.documentElement;
  const button = byId("theme");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const show = () => {
    button.setAttribute("aria-pressed", String(isDark()));
    root.classList.toggle("is-dark", isDark());
    document.querySelector("meta[name=theme-color]").setAttribute("content", getComputedStyle(document.body).backgroundColor); // of the bars around the page
  };
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    document.cookie = `rag_theme=${root.dataset.theme}; path=${location.pathname}; max-age=${YEAR}; samesite=lax`;
    show();
  });
  system.addEventListener("change", show);
  show();
}
