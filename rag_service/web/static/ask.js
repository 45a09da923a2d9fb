// The questions asked so far: one conversation, with all documents or with an agent.

import { chooseAgent, chosenAgent } from "./agents.js";
import { whoAmI } from "./api.js";
import { Composer } from "./composer.js";
import { announce, byId, catchFocus } from "./dom.js";
import { showOwnExamples } from "./examples.js";
import { readConversation, readTurns, saveConversation, saveTurns } from "./history.js";
import { t } from "./i18n.js";
import { trying } from "./notice.js";
import { notifyDone } from "./notify.js";
import { currentScope, scopeTo } from "./scope.js";
import { canShare } from "./session.js";
import { Turn } from "./turn.js";

const SETTLE = 300; // milliseconds; what comes below the answer is made last, and should be seen
const FOLLOWED = 50; // questions of before, with their answers, that go with a question while nothing is kept
const NEAR_THE_END = 160; // pixels from the end within which the page follows the answer

export class Asking {
  /** @param openSource called with what a badge stands for @param onAsk called when there is something to answer */
  constructor({ openSource, onAsk }) {
    this._onAsk = onAsk;
    this._turns = [];
    this._running = null;
    this._current = readConversation(); // id of the kept conversation that is open; null: a new one
    this._earlier = 0; // messages of it before those that are shown
    this._shared = false; // whether others may read it
    this._owner = null; // name of the user whose conversation is open; null: it is one's own
    this._known = false; // whether the turns are those that the service keeps
    this._composer = new Composer({
      ask: (question) => this._askIfFree(question),
      stop: () => this._running?.stop(),
      last: () => this._turns.at(-1)?.question ?? null,
    });
    this._callbacks = {
      openSource,
      askNext: (question) => this._askIfFree(question),
      link: async (answerId) => (await import("./sharing.js")).copyLink(this._current, answerId),
      replace: (turn, question) => this._askInPlaceOf(turn, question),
      onChange: () => this._save(),
    };
    this._listen();
    this._setSharing(false);
    for (const kept of readTurns()) this._add(Turn.restore(kept, this._callbacks));
    announce("");
    this._turns.at(-1)?.element.scrollIntoView({ block: "start" });
  }

  /** Open what stands in the address behind "#ask/": the id of a conversation, also with that of an answer, "new" or nothing. */
  async open(address) {
    const [rest, answerId] = address.split("/");
    if (!this._turns.length) showOwnExamples(); // documents may have come and gone
    const id = rest === "new" ? null : rest || this._current;
    if (rest === "new" && this._current && !this._isBusy()) this._begin();
    if (!rest) this._nameInAddress();
    if (id && (id !== this._current || !this._known) && !this._isBusy()) await this._openKept(id);
    else if (this._current && !this._running) await this._refreshChanges();
    if (answerId && id === this._current) await this._goTo(answerId);
    this._nameInAddress();
  }

  _listen() {
    byId("examples").addEventListener("click", ({ target }) => {
      const example = /** @type {Element} */ (target).closest(".example");
      if (!example) return;
      this._composer.focus();
      this._askIfFree(example.textContent.trim());
    });
    byId("new-conversation").addEventListener("click", () => {
      if (this._isBusy()) return;
      if (location.hash !== "#ask/new") history.pushState(null, "", "#ask/new");
      this._begin();
      this._composer.focus();
    });
    byId("export-conversation").addEventListener("click", async () => {
      const { exportConversation } = await import("./exporting.js");
      exportConversation(this._current, this._turns[0].question);
    });
    byId("share-conversation").addEventListener("click", async () => {
      const { openSharing } = await import("./sharing.js");
      await openSharing({ id: this._current, shared: this._shared }, this._turns[0].question);
    });
    document.addEventListener("conversation-shared", ({ detail: { id, shared } }) => id === this._current && this._setSharing(shared));
    byId("earlier").addEventListener("click", () => trying(document.querySelector(".ask .view-messages"), () => this._showEarlier()));
    document.addEventListener("agent-chosen", () => this._tellSwitch());
    document.addEventListener("conversation-deleted", ({ detail }) => detail === this._current && !this._running && this._startNew());
  }

  _save() {
    // What others share is fetched anew each time: the sharing may have ended.
    if (this._owner === null) {
      saveTurns(this._turns.filter((one) => one.final || one.text));
      saveConversation(this._current);
    }
    this._showWelcome();
  }

  _add(turn) {
    this._onAsk();
    this._turns.push(turn);
    byId("turns").append(turn.element);
    this._showWelcome();
  }

  /** Take the place of what is open. */
  _show(id, kept, { from = 0, shared = false, owner = null } = {}) {
    for (const turn of this._turns.splice(0)) turn.element.remove();
    this._current = id;
    this._setSharing(shared, owner);
    this._setEarlier(from);
    for (const one of kept) this._add(this._restore(one));
    this._save();
  }

  _restore(kept) {
    return Turn.restore(kept, { ...this._callbacks, readOnly: this._owner !== null });
  }

  _setSharing(shared, owner = null) {
    Object.assign(this, { _shared: shared, _owner: owner });
    const button = byId("share-conversation");
    button.title = t(shared ? "shared_open" : "share_conversation");
    button.lastElementChild.textContent = button.title;
    button.classList.toggle("is-shared", shared);
    byId("turns").classList.toggle("is-shared", shared);
    byId("shared-by").hidden = owner === null;
    byId("shared-by").textContent = owner === null ? "" : t("shared_by", { name: owner });
    this._showWelcome();
  }

  _setEarlier(from) {
    this._earlier = from;
    byId("earlier").hidden = !from;
  }

  _isBusy() {
    if (this._running) this._composer.flash(t("busy"));
    return this._running !== null;
  }

  _startNew() {
    this._show(null, []);
    announce(t("conversation_new"));
  }

  /** Begin anew because that is wanted; what belonged to the conversation before goes. */
  _begin() {
    this._startNew();
    document.dispatchEvent(new Event("conversation-begun"));
  }

  async _openKept(id) {
    await whoAmI();
    const { loadConversation } = await import("./conversation.js");
    const { agentId, title, shared, owner, turns: kept, from } = await loadConversation(id).catch((error) => {
      if (error.code === "not_found") this._show(null, []);
      throw error;
    });
    if (this._running || location.hash.split("/")[1] !== id) return; // something else is wanted by now
    this._known = true;
    const here = new Map(this._turns.filter((turn) => turn.final).map((turn) => [turn.final.answerId, turn]));
    if (id === this._current && kept.every(({ final }) => here.has(final?.answerId))) {
      this._setEarlier(from);
      this._setSharing(shared, owner);
      for (const { final, evidence } of kept) here.get(final?.answerId)?.showChanges(evidence.changes);
      return; // failed questions, feedback and the agent chosen in this tab are there, too
    }
    const agent = await chooseAgent(agentId);
    this._show(id, kept.map((one) => ({ ...one, agent, feedback: here.get(one.final?.answerId)?.feedback ?? null, ratings: here.get(one.final?.answerId)?.ratings })), { from, shared, owner });
    this._turns.at(-1)?.element.scrollIntoView({ block: "start" });
    announce(t("conversation_opened", { name: title }));
  }

  /** Lead to an answer of the conversation that is open. */
  async _goTo(answerId) {
    const find = () => this._turns.find(({ final }) => final?.answerId === answerId);
    while (!find() && this._earlier) await this._showEarlier();
    find()?.element.scrollIntoView({ block: "start" });
    find()?.element.querySelector("h2").focus({ preventScroll: true });
  }

  /** Documents may have changed or gone since they were cited. */
  async _refreshChanges() {
    const id = this._current;
    const { loadChanges } = await import("./conversation.js");
    const changes = await loadChanges(id, this._earlier).catch((error) => {
      if (!error.problem) throw error;
    });
    if (!changes || id !== this._current) return;
    for (const turn of this._turns) if (changes.has(turn.final?.answerId)) turn.showChanges(changes.get(turn.final.answerId));
  }

  async _showEarlier() {
    const id = this._current;
    const { loadBefore } = await import("./conversation.js");
    const { turns: kept, from } = await loadBefore(id, this._earlier);
    if (id !== this._current) return;
    const made = kept.map((one) => this._restore({ ...one, agent: this._turns[0]?.agent ?? null }));
    const height = document.documentElement.scrollHeight;
    this._turns.unshift(...made);
    byId("turns").prepend(...made.map(({ element }) => element));
    scrollBy(0, document.documentElement.scrollHeight - height); // what was in sight stays in sight
    this._setEarlier(from);
  }

  /** The address names what is open; a step back leads to what was open before. */
  _nameInAddress() {
    const at = location.hash || "#ask";
    const wanted = `#ask/${this._current}`;
    if (this._current && at.startsWith("#ask") && at !== wanted) history.replaceState(null, "", wanted);
  }

  _showWelcome() {
    const isEmpty = !this._turns.length;
    byId("welcome").hidden = !isEmpty;
    byId("ask-title").classList.toggle("sr-only", !isEmpty);
    byId("new-conversation").hidden = isEmpty;
    byId("export-conversation").hidden = isEmpty || !this._current;
    byId("share-conversation").hidden = isEmpty || !this._current || this._owner !== null || !canShare;
    this._tellSwitch();
  }

  /** A conversation has one partner: whether the next question begins another one. */
  _isSwitched(agent = chosenAgent()) {
    const last = this._turns.at(-1);
    return Boolean(this._current && last && this._owner === null && last.agent?.id !== agent?.id);
  }

  _tellSwitch() {
    const agent = chosenAgent();
    const isSwitched = this._isSwitched() && !byId("agent-choice").hidden; // hidden until the agents are known
    byId("agent-switch").hidden = !isSwitched;
    byId("agent-switch").textContent = isSwitched ? t(agent ? "agent_switch" : "agent_switch_all", { name: agent?.name }) : "";
  }

  /** What was said before to the same agent, or to all documents: the service reads a kept conversation itself. @param replaces the answer that makes way */
  _conversationWith(agent, replaces) {
    const before = this._current ? [] : this._turns.filter((turn) => turn.final && turn.agent?.id === agent?.id).slice(-FOLLOWED);
    return {
      messages: before.flatMap(({ question, final }) => [
        { role: "user", content: question },
        { role: "assistant", content: final.answer },
      ]),
      conversationId: this._current,
      replaces: this._current && replaces,
    };
  }

  /** The conversation was deleted in another tab; asked again, it is a new one. */
  _forgetKept() {
    this._current = null;
    for (const { final } of this._turns) if (final) final.conversationId = null;
  }

  /** Ask instead of a turn of before: it goes, and all after it. Whether that is done. */
  _askInPlaceOf(turn, question) {
    if (this._isBusy()) return false;
    const gone = this._turns.splice(this._turns.indexOf(turn));
    for (const { element } of gone) element.remove();
    if (this._composer.text === turn.question) this._composer.set(""); // put back when it failed
    this._ask(question, { agent: turn.agent, replaces: gone.map(({ kept }) => kept).find(Boolean) ?? null });
    return true;
  }

  /** Whether the question is asked; not while another is being answered. */
  _askIfFree(question) {
    if (this._isBusy()) return false;
    this._ask(question);
    return true;
  }

  async _ask(question, { agent = chosenAgent(), replaces = null } = {}) {
    if (this._owner !== null || this._isSwitched(agent)) this._startNew(); // a conversation has one owner
    document.querySelector(".ask .view-messages").replaceChildren(); // what went wrong before is over
    const turn = new Turn(question, { ...this._callbacks, agent, scope: agent ? null : currentScope(), conversation: this._conversationWith(agent, replaces) });
    this._running = turn;
    this._add(turn);
    this._composer.showRunning(true);
    const began = Date.now();
    const unfollow = follow(turn.element);
    turn.element.scrollIntoView({ block: "start" });
    catchFocus(turn.element.querySelector("h2")); // it was in what has made way
    try {
      await turn.run();
      if (turn.error && !turn.text && !this._composer.text) this._composer.set(question); // nothing typed is lost
      if (turn.lacksScope) scopeTo({});
      else if (turn.error?.code === "not_found") this._forgetKept();
      if (turn.final || turn.error) notifyDone(t(turn.final ? "notify_answer" : "notify_failed", { question }), began);
      if (turn.final) this._current = turn.final.conversationId ?? this._current;
      this._known = true;
      this._nameInAddress();
    } finally {
      this._running = null;
      setTimeout(unfollow, SETTLE);
      this._composer.showRunning(false);
      this._composer.set(this._composer.text); // the draft that was kept for the case of a reload is done with
      this._tellSwitch();
      this._save();
    }
  }
}

/** While its reader is at the end of the page, a growing answer rises until its question is at the top; what he is to
 * read first stays in sight, however long the answer becomes. */
function follow(element) {
  let last = element.offsetHeight;
  const observer = new ResizeObserver(() => {
    const grown = element.offsetHeight - last;
    last = element.offsetHeight;
    const page = document.documentElement;
    const left = page.scrollHeight - page.scrollTop - page.clientHeight - Math.max(0, grown);
    const isBelowTop = element.getBoundingClientRect().top > parseFloat(getComputedStyle(page).scrollPaddingTop);
    if (left < NEAR_THE_END && isBelowTop) element.scrollIntoView({ block: "start" });
  });
  observer.observe(element);
  return () => observer.disconnect();
}
