// Starts the parts of the page. A further part (corpora, agents, keys) is a module of its own, started here.

import { readiness } from "./api.js";
import { startAsking } from "./ask.js";
import { byId, el } from "./dom.js";
import { t } from "./i18n.js";
import { notice } from "./notice.js";
import { SourcePanel } from "./panel.js";
import { startTheme } from "./theme.js";
import { startUploads } from "./upload.js";
import { startViews } from "./views.js";

const panel = new SourcePanel();
startTheme();
startAsking({ openSource: (...source) => panel.open(...source) });
startUploads();
startViews({ onLeave: () => panel.close() });
document.documentElement.classList.add("is-started");
performance.mark("started"); // from here on the page takes questions; read by the tests
tellState();

/** Say at once what does not work, instead of letting a question fail. */
async function tellState() {
  const state = await readiness();
  if (!state?.dependencies || state.status === "ready") return;
  const down = Object.entries(state.dependencies).filter(([, dependency]) => dependency.state === "down");
  byId("service-notice").replaceChildren(
    notice(
      "warn",
      el("p", { className: "notice-title" }, t(`service_${state.status}`)),
      ...down.map(([name, { without }]) => el("p", { lang: "en" }, `${name}: ${without}`)),
    ),
  );
}
