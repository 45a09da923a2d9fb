// The question box and the questions asked so far.

import { chosenAgent } from "./agents.js";
import { read, whoAmI } from "./api.js";
import { announce, byId, el, icon } from "./dom.js";
import { readDraft, readTurns, saveDraft, saveTurns } from "./history.js";
import { t } from "./i18n.js";
import { Turn } from "./turn.js";

const NEARLY_FULL = 0.8; // share of the limit from which the length is shown
const SETTLE = 300; // milliseconds; what comes below the answer is made last, and should be seen
const FOLLOWED = 5; // questions of before, with their answers, that go with a question
const NEAR_THE_END = 160; // pixels from the end within which the page follows the answer

/** @param openSource called with what a badge stands for @param onAsk called when there is something to answer */
export function startAsking({ openSource, onAsk }) {
  const box = byId("question");
  const send = byId("send");
  const stop = byId("stop");
  const turns = [];
  let running = null;

  const callbacks = { openSource, askAgain: askQuestion, onChange: () => save() };
  const save = () => saveTurns(turns.filter((one) => one.final || one.text));

  function add(turn) {
    onAsk();
    turns.push(turn);
    byId("turns").append(turn.element);
    showWelcome();
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
      conversationId: before.at(-1)?.final.conversationId ?? null,
    };
  }

  async function askQuestion(question) {
    if (running) {
      announce(t("busy"));
      flash(byId("question-hint"), t("busy"));
      return;
    }
    const agent = chosenAgent();
    const turn = new Turn(question, { ...callbacks, agent, conversation: conversationWith(agent) });
    running = turn;
    add(turn);
    showRunning(true);
    const unfollow = follow(turn.element);
    turn.element.scrollIntoView({ block: "start" });
    try {
      await turn.run();
      if (turn.error && !turn.text && !box.value) box.value = question; // nothing typed is lost
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
  showOwnExamples();

  byId("new-conversation").addEventListener("click", () => {
    if (running) {
      announce(t("busy"));
      flash(byId("question-hint"), t("busy"));
      return;
    }
    for (const turn of turns.splice(0)) turn.element.remove();
    save();
    showWelcome();
    box.focus();
    announce(t("conversation_new"));
  });

  for (const kept of readTurns()) add(Turn.restore(kept, callbacks));
  announce("");
  setQuestion(readDraft());
  if (turns.length) turns.at(-1).element.scrollIntoView({ block: "start" });
}

/** Questions over the visitor's own documents take the place of those over the documents that come with the service. */
async function showOwnExamples() {
  await whoAmI().catch(() => null);
  const found = await read("/examples").catch(() => null); // the others stay
  if (!found?.items?.length) return;
  const button = ({ question }) =>
    el("button", { type: "button", className: "example" }, el("span", {}, question), icon("chevron"));
  byId("examples").replaceChildren(...found.items.map((example) => el("li", {}, button(example))));
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
