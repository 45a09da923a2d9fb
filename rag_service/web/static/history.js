// What the visitor has typed and been answered, kept in this tab.

import { read, write } from "./storage.js";

const DRAFT = "rag_draft";
const TURNS = "rag_turns";
const CONVERSATION = "rag_conversation";
const SCOPE = "rag_scope";
const MOST_TURNS = 30;

export const saveDraft = (text) => write(DRAFT, text);
export const readDraft = () => read(DRAFT) ?? "";

/** @param turns finished ones, as plain values; the oldest are let go when there is no room */
export function saveTurns(turns) {
  for (let from = Math.max(0, turns.length - MOST_TURNS); from <= turns.length; from += 1) {
    if (write(TURNS, JSON.stringify(turns.slice(from)))) return;
  }
}

/** The id of the kept conversation that the turns belong to; null: it is not kept yet. */
export const saveConversation = (id) => write(CONVERSATION, id);
export const readConversation = () => read(CONVERSATION);

export const readTurns = () => parse(TURNS, []);

/** What questions are answered from, as `scope.js` has it. */
export const saveScope = (scope) => write(SCOPE, JSON.stringify(scope));
export const readScope = () => parse(SCOPE, {});

function parse(key, otherwise) {
  try {
    return JSON.parse(read(key)) ?? otherwise;
  } catch {
    return otherwise;
  }
}
