// Starts the page. What belongs to one part of it alone is a module that is loaded when the part is opened.

import { networkError, readiness, whoAmI } from "./api.js";
import { startAgents } from "./agents.js";
import { Asking } from "./ask.js";
import { byId, el, icon } from "./dom.js";
import { t } from "./i18n.js";
import { startKeys } from "./keys.js";
import { errorNotice, notice } from "./notice.js";
import { startNotify } from "./notify.js";
import { startScope } from "./scope.js";
import { isAdministrator, mayWrite } from "./session.js";
import { startSignIn } from "./signin.js";
import { ATTACHED, read } from "./storage.js";
import { startTheme } from "./theme.js";
import { startViews } from "./views.js";

const PARTS = {
  conversations: () => import("./conversations.js"),
  documents: () => import("./documents.js"),
  manage: () => import("./manage.js"),
};

const UNUSED = new Set(["failed", "silent"]); // outcomes of an examination after which a judge is not used

const opening = new Map(); // section → what was last opened in it; only that tells when it is there
let panel = null; // beside the answers; fetched with the first of them, so that it is there when it is wanted

startTheme();
startKeys();
startNotify();
const asking = new Asking({ openSource: async (...source) => (await loadPanel())?.open(...source), onAsk: loadPanel });
PARTS.ask = () => asking;
startViews({ onLeave: async () => (await panel)?.close(), onShow: openPart });
takeFiles();
document.documentElement.classList.add("is-started");
performance.mark("started"); // from here on the page takes questions; read by the tests
startSignIn();
startAgents();
startScope();
tellState();
whoAmI().then((user) => {
  document.documentElement.classList.toggle("is-administrator", isAdministrator(user));
  document.documentElement.classList.toggle("is-reader", !mayWrite(user));
  if (read(ATTACHED)) import("./attach.js");
}, () => {});

// What nobody waits for fails in silence otherwise: a refusal, or a module that cannot be fetched while the server is away.
addEventListener("unhandledrejection", (event) => {
  const isModule = event.reason instanceof TypeError && /module/i.test(event.reason.message);
  if (!event.reason?.problem && !isModule) return;
  event.preventDefault();
  const messages = document.querySelector(".view:not([hidden]) .view-messages");
  messages?.replaceChildren(errorNotice(isModule ? networkError() : event.reason));
  messages?.scrollIntoView({ block: "nearest" });
});

function loadPanel() {
  panel ??= import("./panel.js").then(
    (module) => module.panel(),
    () => (panel = null), // the server is away; the next badge tries again
  );
  return panel;
}

async function openPart(section, rest) {
  const load = PARTS[section.dataset.view];
  if (!load) return;
  const messages = section.querySelector(".view-messages");
  const own = {};
  opening.set(section, own);
  section.setAttribute("aria-busy", "true");
  try {
    const part = await load();
    messages.replaceChildren();
    await part.open(rest);
  } catch (error) {
    // An ApiError, or a module that could not be fetched: the server is gone.
    const again = el("button", { type: "button", className: "button", onclick: () => openPart(section, rest) }, icon("retry"), t("try_again"));
    messages.replaceChildren(errorNotice(error.problem ? error : networkError(), again));
    if (!error.problem) console.error(error);
  } finally {
    if (opening.get(section) === own) section.setAttribute("aria-busy", "false");
  }
}

/**
 * Files are taken from the first moment on, before the part for them is loaded. One dropped anywhere is meant for
 * us: the browser's own way would be to leave the page for it. Beside the question box they come with the question.
 */
function takeFiles() {
  const take = async (files) => (await PARTS.documents()).take(files);
  let coming = 0; // calls whose files are not in the list yet
  const attach = async (files) => {
    const tell = (by) => byId("attached").setAttribute("aria-busy", String((coming += by) > 0));
    tell(1); // from now on: a question that is quicker than the part for files waits for them all the same
    try {
      await (await import("./attach.js")).attach(files);
    } finally {
      tell(-1);
      document.dispatchEvent(new CustomEvent("attached", { detail: "failed" })); // where they have not come into the list
    }
  };
  for (const [field, use] of /** @type {const} */ ([[byId("files"), take], [byId("folder"), take], [byId("attach"), attach]])) {
    field.addEventListener("change", () => {
      const files = [...field.files];
      field.value = ""; // the same file may be chosen again
      use(files);
    });
  }
  byId("question").addEventListener("paste", (event) => {
    const { files, types } = event.clipboardData;
    if (!files.length || types.includes("text/plain")) return; // cells of a sheet come with a picture of them
    event.preventDefault();
    attach([...files]);
  });
  const isAsking = () => byId("question").checkVisibility();
  const showOver = (isOver) => {
    byId("drop-zone").classList.toggle("is-over", isOver);
    byId("ask-form").classList.toggle("is-over", isOver);
  };
  const holdsFiles = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files");
  addEventListener("dragover", (event) => {
    if (!holdsFiles(event)) return;
    event.preventDefault();
    showOver(true);
  });
  addEventListener("dragleave", (event) => {
    if (!event.relatedTarget) showOver(false);
  });
  addEventListener("drop", (event) => {
    if (!holdsFiles(event)) return;
    event.preventDefault();
    showOver(false);
    const entries = [...event.dataTransfer.items].map((item) => item.webkitGetAsEntry() ?? item.getAsFile()).filter(Boolean);
    if (isAsking() && !entries.some((entry) => "isDirectory" in entry && entry.isDirectory)) return attach([...event.dataTransfer.files]);
    location.hash = "#documents";
    import("./folders.js").then(({ filesBelow }) => filesBelow(entries)).then(take);
  });
}

/** Say at once what does not work, instead of letting a question fail. */
async function tellState() {
  const state = await readiness();
  if (!state?.dependencies) return;
  if (state.status !== "ready") {
    const down = Object.entries(state.dependencies).filter(([, dependency]) => dependency.state === "down");
    byId("service-notice").append(
      notice(
        "warn",
        el("p", { className: "notice-title" }, t(`service_${state.status}`)),
        ...down.map(([name, { without }]) => el("p", { lang: "en" }, `${name}: ${without}`)),
      ),
    );
  }
  if (UNUSED.has(state.judge?.state) && isAdministrator(await whoAmI())) {
    const { name, detail } = state.judge;
    byId("service-notice").append(
      notice("info", el("p", { className: "notice-title" }, t("judge_unused", { name })), el("p", { lang: "en" }, detail)),
    );
  }
}
