// One question and what becomes of it: searching, written, complete, stopped, or failed.

import { ApiError, ask, chat } from "./api.js";
import { AnswerView, makeLegend, makeSources } from "./answer.js";
import { copyText } from "./copying.js";
import { announce, el, hidden, icon } from "./dom.js";
import { Evidence } from "./evidence.js";
import { FeedbackBar } from "./feedback.js";
import { language as pageLanguage, t, upright } from "./i18n.js";
import { errorNotice, notice } from "./notice.js";
import { makePlaces } from "./found_places.js";
import { iconOf, sourcePlace } from "./places.js";
import { proofOf } from "./proof.js";
import { makeSearched, makeVerdict, makeWhy } from "./why.js";

const PAINT_EVERY = 60; // milliseconds; tokens may come faster than anybody reads
const JOINT = /[,;?]\s+\S|\s(?:and|or|y|e|o|u|et|ou)\s/giu;

let count = 0;

/** How many things a question asks for, at most: so many quotes are shown at once. */
const partsOf = (question) => 1 + (question.match(JOINT) ?? []).length;

/** A tool that the model called: "Searched for “…”". */
const stepLine = ({ tool, asked, found }) => el("li", {}, t(`step_${tool}`, { asked, count: found }));

export class Turn {
  /**
   * @param question as it was typed
   * @param openSource called with (citation, {evidence, rating}, badge, sentence); `rating`: a FeedbackBar or null
   * @param askNext called with a question that follows
   * @param link called with the id of the answer of which a link is wanted
   * @param replace called with the turn and the question that is to take its place, and of all after it
   * @param onChange called when what is worth keeping has changed
   * @param readOnly whether it is another user's: it is read and copied, not asked again or rated
   * @param agent who answers, {id, name}; null: all documents
   * @param scope of what it is asked, {words, filters}; null: all
   * @param conversation of before, {messages, conversationId, replaces}; `replaces`: the answer whose place this one takes
   */
  constructor(question, { openSource, askNext, link, replace, onChange, readOnly = false, agent = null, scope = null, conversation = { messages: [], conversationId: null, replaces: null } }) {
    this.question = question;
    this.agent = agent;
    this.scope = scope;
    this.feedback = null; // {thumbs, comment} that the visitor has given
    this.ratings = {}; // the same of citations, by their place
    this.evidence = new Evidence();
    this.final = null;
    this.text = "";
    this.error = null; // the ApiError that ended it
    this._askNext = askNext;
    this._link = link;
    this._replace = replace;
    this._onChange = onChange;
    this._readOnly = readOnly;
    this._conversation = conversation;
    this._stop = new AbortController();
    this._timer = 0;
    this._answer = new AnswerView(this.evidence, (citation, badge, sentence) =>
      openSource(citation, { evidence: this.evidence, rating: this._ratingOf(citation) }, badge, sentence),
    );
    this._progress = el("p", { className: "progress" });
    this._verdict = el("div", {});
    this._below = el("div", { className: "below" });
    this._steps = el("ul", { className: "steps muted", hidden: true });
    this._taken = [];
    const id = `turn-${(count += 1)}`;
    const words = [el("span", { className: "sr-only" }, `${t("question")}: `), question];
    this._asked = el("h2", { className: "asked", id, tabIndex: -1 }, ...words);
    this._body = el("div", { className: "answer" }, this._progress, this._verdict, this._steps, this._answer.element, this._below);
    this.element = el(
      "article",
      { className: "turn", "aria-labelledby": id },
      this._asked,
      scope ? el("p", { className: "asked-agent muted" }, icon("files"), t("asked_in", { names: scope.words })) : null,
      agent ? el("p", { className: "asked-agent muted" }, icon("agent"), t("asked_agent", { name: agent.name })) : null,
      this._body,
    );
  }

  stop() {
    this._stop.abort();
  }

  /** Ask and show; `final` or `error` is set afterwards, neither when it was stopped. */
  async run() {
    this._setBusy(true, t("searching"));
    try {
      for await (const { event, data } of this._events()) this._take(event, data);
      this._complete();
    } catch (error) {
      if (this._stop.signal.aborted) this._endStopped();
      else if (error.problem) {
        this.error = error;
        if (this.lacksScope) error.problem.explanation = t("scope_gone");
        if (this.text && error.code !== "broken") error.problem.explanation = t("partial_kept");
        this._end(errorNotice(error, this._againButton()));
      } else throw error;
    } finally {
      this._setBusy(false);
    }
  }

  /** Whether it failed because a document or corpus that it was limited to is gone. */
  get lacksScope() {
    return this.error?.code === "not_found" && this.scope !== null && Boolean(this.error.problem.errors?.length);
  }

  _events() {
    if (!this.agent) return ask(this.question, this._conversation, this.scope?.filters, this._stop.signal);
    const messages = [...this._conversation.messages, { role: "user", content: this.question }];
    const body = { ...this._conversation, messages };
    return chat(this.agent.id, body, this._stop.signal);
  }

  _take(event, data) {
    if (event === "delta" && data.restart) {
      this.text = data.text; // what came before was not the answer
      this.evidence.citations = [];
    } else if (event === "delta") this.text += data.text;
    else this.evidence.take(event, data);
    if (event === "sources" && data.sources.length) this._setBusy(true, t("writing", { count: data.sources.length }));
    if (event === "citation") this._setBusy(true, t("checking"));
    if (event === "step") this._setBusy(true, this._showSteps([...this._taken, data]));
    if (event === "final") {
      this.final = data;
      this.text = data.answer;
    }
    this._timer ||= setTimeout(() => this._paint(), PAINT_EVERY);
  }

  _paint(state = "writing") {
    clearTimeout(this._timer);
    this._timer = 0;
    return this._answer.show(this.text, this.final ? "final" : state);
  }

  /** Show what the model did before it answered; returns the last of it. */
  _showSteps(steps) {
    this._taken = steps;
    this._steps.hidden = !steps.length;
    this._steps.replaceChildren(...steps.map(stepLine));
    return this._steps.lastChild?.textContent;
  }

  _complete() {
    const { final } = this;
    this._showSteps(final.steps ?? []);
    this._answer.element.lang = final.language ?? "";
    const kinds = this._paint();
    const places = final.places ?? []; // answers kept from before have none
    this._answer.element.hidden = places.length > 0;
    if (final.citations.every((citation) => proofOf(citation) === "quote")) this._answer.fold(partsOf(this.question));
    const feedback = this._readOnly ? null : new FeedbackBar(final.answerId, this.feedback, (given) => {
      this.feedback = given;
      this._onChange();
    });
    const verdict = this._showVerdict(kinds);
    this._below.replaceChildren(
      ...[
        places.length ? makePlaces(places) : null,
        makeSources(this.evidence),
        makeLegend(kinds, final.citations),
        final.withheldSentences ? notice("warn", el("p", {}, t("withheld", { count: final.withheldSentences }))) : null,
        final.sources.length || !verdict ? null : this._nothingFound(),
        el(
          "div",
          { className: "answer-foot" },
          el("div", { className: "answer-actions" }, feedback?.buttons, this._readOnly ? null : this._againButton("quiet"), this._editButton(), this._copyButton(), this._saveButton(), this._linkButton()),
        ),
        feedback?.more,
        this._followUps(),
        makeWhy(final),
      ].filter(Boolean),
    );
    announce(`${t("complete")} ${verdict?.textContent ?? ""}`);
  }

  _showVerdict(kinds) {
    const verdict = makeVerdict(this.final, !kinds.size, this.evidence.changes, (citation) => this._answer.lead(citation));
    this._verdict.replaceChildren(...[verdict, makeSearched(this.final)].filter(Boolean));
    return verdict;
  }

  /** Documents that the answer cites have changed or gone, or are back. */
  showChanges(changes) {
    if (!this.final || JSON.stringify(changes) === JSON.stringify(this.evidence.changes)) return;
    this.evidence.changes = changes;
    this._showVerdict(this._paint());
    this._below.querySelector(".sources")?.replaceWith(makeSources(this.evidence));
  }

  /** Thumbs on a citation of a complete answer. */
  _ratingOf({ index }) {
    if (!this.final || index === undefined || this._readOnly) return null;
    const keep = (given) => {
      this.ratings[index] = given;
      this._onChange();
    };
    return new FeedbackBar(this.final.answerId, this.ratings[index] ?? null, keep, index);
  }

  /** The partial answer stays, with a word on why it ends. */
  _end(message) {
    const kinds = this._paint("ended");
    const legend = makeLegend(kinds, this.evidence.citations);
    const actions = el("div", { className: "answer-actions" }, this._editButton(), this.text ? this._copyButton() : null);
    this._below.replaceChildren(...[legend, message, el("div", { className: "answer-foot" }, actions)].filter(Boolean));
  }

  _endStopped() {
    this._end(notice("info", el("p", {}, t("stopped")), el("p", { className: "notice-actions" }, this._againButton())));
    announce(t("stopped"));
  }

  _setBusy(busy, words = "") {
    this._body.setAttribute("aria-busy", String(busy));
    this._body.classList.toggle("is-busy", busy);
    if (words && words !== this._progress.textContent) announce(words);
    this._progress.textContent = words;
    this._progress.hidden = !words;
  }

  /** Questions about what was found and not used; shown below the latest answer. */
  _followUps() {
    const { followUps = [] } = this.final;
    if (!followUps.length) return null;
    const press = (question) => el("button", { type: "button", className: "quiet", onclick: () => this._askNext(question) }, icon("ask"), upright(question));
    return el("div", { className: "follow-ups" }, el("h3", {}, t("follow_ups")), el("ul", {}, ...followUps.map((question) => el("li", {}, press(question)))));
  }

  /** The passages that come nearest. */
  _nothingFound() {
    const related = this.final.related ?? []; // answers kept from before have none
    const show = ({ fileName, text, language, ...source }) => {
      const place = sourcePlace({ fileName, ...source });
      const element = el("details", { className: "related", lang: language }, el("summary", { lang: pageLanguage }, icon(iconOf(fileName)), place));
      import("./passage.js").then(
        ({ renderPassage }) => element.append(renderPassage(text, null, fileName)),
        () => element.append(text),
      );
      return element;
    };
    return el(
      "div",
      {},
      related.length ? el("p", {}, t("related")) : null,
      ...related.map(show),
      el("p", { className: "muted" }, el("a", { href: "#documents" }, t("go_documents"))),
    );
  }

  /** The answer whose place another one takes that is asked in the place of this turn; null: none is kept. */
  get kept() {
    if (!this.final) return this._conversation.replaces;
    return this.final.conversationId === null ? null : this.final.answerId;
  }

  _againButton(className = "button") {
    const onclick = () => this._replace(this, this.question);
    return el("button", { type: "button", className, onclick }, icon("retry"), t("ask_again"));
  }

  _editButton() {
    if (this._readOnly) return null;
    const onclick = async ({ currentTarget }) => {
      const { editQuestion } = await import("./editing.js");
      await editQuestion(this._asked, this.question, (question) => this._replace(this, question));
      currentTarget?.focus();
    };
    return el("button", { type: "button", className: "quiet", onclick }, icon("edit"), t("edit_question"));
  }

  _copyButton() {
    const label = el("span", {}, t("copy"));
    const copy = async () => {
      const copied = await copyText(await this._markdown());
      label.style.minWidth = `${label.offsetWidth}px`; // what stands beside it stays where it is
      label.textContent = t(copied ? "copied" : "copy_failed");
      announce(label.textContent);
      setTimeout(() => (label.textContent = t("copy")), 2500);
    };
    return el("button", { type: "button", className: "quiet", onclick: copy }, icon("copy"), label);
  }

  _saveButton() {
    const onclick = async () => (await import("./exporting.js")).saveMarkdown(await this._markdown(), this.question);
    return el("button", { type: "button", className: "icon-button", title: t("save_answer"), onclick }, icon("download"), hidden(t("save_answer")));
  }

  /** Shown where the conversation is shared. */
  _linkButton() {
    const onclick = () => this._link(this.final.answerId);
    return el("button", { type: "button", className: "icon-button link-answer", title: t("link_answer"), onclick }, icon("share"), hidden(t("link_answer")));
  }

  async _markdown() {
    const { answerMarkdown } = await import("./exporting.js");
    return answerMarkdown(this.question, this.text, this.evidence, this._verdict.querySelector(".decision")?.textContent);
  }

  /** What `history.js` keeps. */
  toJSON() {
    const { question, agent, scope, final, text, evidence, feedback, ratings, error, kept } = this;
    return { question, agent, scope, final, text, evidence, feedback, ratings, problem: error?.problem, replaces: kept };
  }

  /** A turn of before, from what was kept. @param isBare nothing is known but the text and its citations */
  static restore({ question, agent, scope, final, text, evidence, feedback, ratings = {}, problem, replaces = null, isBare }, callbacks) {
    const turn = new Turn(question, { ...callbacks, agent, scope, conversation: { replaces } });
    turn._progress.hidden = true;
    Object.assign(turn.evidence, evidence);
    Object.assign(turn, { final, text, feedback, ratings, error: problem ? new ApiError(problem) : null });
    if (final) turn._complete();
    else if (isBare) turn._end(null);
    else if (turn.error) turn._end(errorNotice(turn.error, turn._againButton()));
    else turn._endStopped();
    return turn;
  }
}
