// The question box and the questions asked so far.

import { chooseAgent, chosenAgent } from "./agents.js";
import { read, whoAmI } from "./api.js";
import { announce, byId, el, icon } from "./dom.js";
import { readConversation, readDraft, readTurns, saveConversation, saveDraft, saveTurns } from "./history.js";
import { t } from "./i18n.js";
import { notice } from "./notice.js";
import { isAdministrator, mayWrite } from "./session.js";
import { Turn } from "./turn.js";

const NEARLY_FULL = 0.8; // share of the limit from which the length is shown
const SETTLE = 300; // milliseconds; what comes below the answer is made last, and should be seen
const FOLLOWED = 5; // questions of before, with their answers, that go with a question
const NEAR_THE_END = 160; // pixels from the end within which the page follows the answer

/**
 * @param openSource called with what a badge stands for
 * @param onAsk called when there is something to answer
 * @returns {open}, called with what stands in the address behind "#ask/": the id of a conversation, "new" or nothing
 */
export function startAsking({ openSource, onAsk }) {
  const box = byId("question");
  const send = byId("send");
  const stop = byId("stop");
  const turns = [];
  let running = null;
  let current = readConversation(); // id of the kept conversation that is open; null: a new one
  let earlier = 0; // messages of it before those that are shown
  let known = false; // whether the turns are those that the service keeps

  const callbacks = { openSource, askAgain: askQuestion, edit, onChange: () => save() };
  const save = () => {
    saveTurns(turns.filter((one) => one.final || one.text));
    saveConversation(current);
  };

  function add(turn) {
    onAsk();
    turns.push(turn);
    byId("turns").append(turn.element);
    showWelcome();
  }

  /** Take the place of what is open. */
  function show(id, kept, from = 0) {
    for (const turn of turns.splice(0)) turn.element.remove();
    current = id;
    earlier = from;
    byId("earlier").hidden = !from;
    for (const one of kept) add(Turn.restore(one, callbacks));
    showWelcome();
    save();
  }

  function isBusy() {
    if (!running) return false;
    announce(t("busy"));
    flash(byId("question-hint"), t("busy"));
    return true;
  }

  function startNew() {
    show(null, []);
    announce(t("conversation_new"));
  }

  async function open(rest) {
    if (!turns.length) showOwnExamples(); // documents may have come and gone
    const id = rest === "new" ? null : rest || current;
    if (rest === "new" && current && !isBusy()) startNew();
    if (!rest) nameInAddress();
    if (id && (id !== current || !known) && !isBusy()) await openKept(id);
    nameInAddress();
  }

  async function openKept(id) {
    await whoAmI();
    const { loadConversation } = await import("./conversation.js");
    const { agentId, title, turns: kept, from } = await loadConversation(id).catch((error) => {
      if (error.code === "not_found") show(null, []);
      throw error;
    });
    if (running || location.hash !== `#ask/${id}`) return; // something else is wanted by now
    known = true;
    const here = new Map(turns.filter((turn) => turn.final).map((turn) => [turn.final.answerId, turn]));
    const agent = await chooseAgent(agentId);
    if (id === current && kept.every(({ final }) => here.has(final?.answerId))) {
      earlier = from;
      byId("earlier").hidden = !from;
      return; // failed questions and feedback of this tab are there, too
    }
    show(id, kept.map((one) => ({ ...one, agent, feedback: here.get(one.final?.answerId)?.feedback ?? null })), from);
    turns.at(-1)?.element.scrollIntoView({ block: "start" });
    announce(t("conversation_opened", { name: title }));
  }

  async function showEarlier() {
    const id = current;
    const { loadBefore } = await import("./conversation.js");
    const { turns: kept, from } = await loadBefore(id, earlier);
    if (id !== current) return;
    const made = kept.map((one) => Turn.restore({ ...one, agent: turns[0]?.agent ?? null }, callbacks));
    const height = document.documentElement.scrollHeight;
    turns.unshift(...made);
    byId("turns").prepend(...made.map(({ element }) => element));
    scrollBy(0, document.documentElement.scrollHeight - height); // what was in sight stays in sight
    earlier = from;
    byId("earlier").hidden = !from;
  }

  /** The address names what is open; a step back leads to what was open before. */
  function nameInAddress() {
    const at = location.hash || "#ask";
    const wanted = `#ask/${current}`;
    if (current && at.startsWith("#ask") && at !== wanted) history.replaceState(null, "", wanted);
  }

  function edit(question) {
    setQuestion(question);
    box.focus();
    box.setSelectionRange(question.length, question.length);
  }

  function showWelcome() {
    byId("welcome").hidden = turns.length > 0;
    byId("ask-title").classList.toggle("sr-only", turns.length > 0);
    byId("new-conversation").hidden = !turns.length;
  }

  /** What was said before to the same agent, or to all documents. */
  function conversationWith(agent) {
    const before = turns.filter((turn) => turn.final && turn.agent?.id === agent?.id).slice(-FOLLOWED);
    return {
      messages: before.flatMap(({ question, final }) => [
        { role: "user", content: question },
        { role: "assistant", content: final.answer },
      ]),
      conversationId: current,
    };
  }

  async function askQuestion(question) {
    if (isBusy()) return;
    const agent = chosenAgent();
    const last = turns.at(-1);
    if (current && last && last.agent?.id !== agent?.id) startNew(); // a conversation has one partner
    const turn = new Turn(question, { ...callbacks, agent, conversation: conversationWith(agent) });
    running = turn;
    add(turn);
    showRunning(true);
    const unfollow = follow(turn.element);
    turn.element.scrollIntoView({ block: "start" });
    try {
      await turn.run();
      if (turn.error && !turn.text && !box.value) box.value = question; // nothing typed is lost
      if (turn.error?.code === "not_found") current = null; // deleted in another tab; asked again, it is a new one
      if (turn.final) current = turn.final.conversationId ?? current;
      known = true;
      nameInAddress();
    } finally {
      running = null;
      setTimeout(unfollow, SETTLE);
      showRunning(false);
      setQuestion(box.value);
      save();
    }
  }

  function showRunning(isRunning) {
    const hadFocus = [send, stop].includes(document.activeElement);
    send.hidden = isRunning;
    stop.hidden = !isRunning;
    if (hadFocus) (isRunning ? stop : box).focus();
  }

  function setQuestion(text) {
    box.value = text;
    saveDraft(text);
    showLength();
  }

  function showLength() {
    const max = Number(box.dataset.max);
    const length = [...box.value].length;
    const tooLong = length > max;
    byId("question-count").textContent = length > max * NEARLY_FULL ? t("too_long", { count: length, max }) : "";
    box.setAttribute("aria-invalid", String(tooLong));
    send.disabled = tooLong;
    box.style.height = "auto"; // grow with the text; browsers with field-sizing do it by themselves
    box.style.height = `${box.scrollHeight}px`;
  }

  byId("ask-form").addEventListener("submit", (event) => {
    event.preventDefault();
    const question = box.value.trim();
    if (!question || send.disabled) return;
    if (!running) {
      setQuestion("");
      saveDraft(question); // until it is answered: a reload in between must not lose it
    }
    askQuestion(question);
  });
  box.addEventListener("input", () => setQuestion(box.value));
  box.addEventListener("keydown", (event) => {
    if (event.key === "ArrowUp" && !box.value && turns.length) {
      event.preventDefault();
      edit(turns.at(-1).question);
    }
    // While a word is being composed (accents, Chinese), Enter belongs to the input method.
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    byId("ask-form").requestSubmit();
  });
  stop.addEventListener("click", () => running?.stop());
  byId("examples").addEventListener("click", ({ target }) => {
    const example = target.closest(".example");
    if (!example) return;
    box.focus();
    askQuestion(example.textContent.trim());
  });
  byId("new-conversation").addEventListener("click", () => {
    if (isBusy()) return;
    if (location.hash !== "#ask/new") history.pushState(null, "", "#ask/new");
    startNew();
    box.focus();
  });
  byId("earlier").addEventListener("click", showEarlier);
  document.addEventListener("conversation-deleted", ({ detail }) => detail === current && !running && startNew());

  for (const kept of readTurns()) add(Turn.restore(kept, callbacks));
  announce("");
  setQuestion(readDraft());
  if (turns.length) turns.at(-1).element.scrollIntoView({ block: "start" });
  return { open };
}

/** Questions over the visitor's own documents take the place of those over the documents that come with the service. */
async function showOwnExamples() {
  const user = await whoAmI().catch(() => null);
  const found = await read("/examples").catch(() => null); // the others stay
  if (user && found) byId("no-documents").replaceChildren(...(found.hasDocuments ? [] : [whatToDo(user)]));
  byId("examples-block").hidden = found?.hasDocuments === false;
  if (!found?.items?.length) return;
  const button = ({ question }) =>
    el("button", { type: "button", className: "example" }, el("span", {}, question), icon("chevron"));
  byId("examples").replaceChildren(...found.items.map((example) => el("li", {}, button(example))));
}

/** What someone with these rights can do about there being no documents. */
function whatToDo(user) {
  const role = isAdministrator(user) ? "admin" : mayWrite(user) ? "user" : "reader";
  const add = el("a", { className: "button", href: "#documents" }, icon("upload"), t("go_documents"));
  const title = el("p", { className: "notice-title" }, t("no_documents"));
  return notice("info", title, el("p", {}, t(`no_documents_${role}`)), role === "reader" ? null : el("p", { className: "notice-actions" }, add));
}

/** Keep the growing answer in view while its reader is at the end of the page, and only then. */
function follow(element) {
  let last = element.offsetHeight;
  const observer = new ResizeObserver(() => {
    const grown = element.offsetHeight - last;
    last = element.offsetHeight;
    const page = document.documentElement;
    const left = page.scrollHeight - page.scrollTop - page.clientHeight - Math.max(0, grown);
    if (left < NEAR_THE_END) page.scrollTop = page.scrollHeight;
  });
  observer.observe(element);
  return () => observer.disconnect();
}

function flash(element, words) {
  const note = element.querySelector(".keys");
  note.dataset.usual ??= note.textContent;
  note.textContent = words;
  setTimeout(() => (note.textContent = note.dataset.usual), 4000);
}
