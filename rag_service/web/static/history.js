// What the visitor has typed and been answered, kept in this tab. A sign-out calls `forget`.

import { read, write } from "./storage.js";

const DRAFT = "rag_draft";
const TURNS = "rag_turns";
const CONVERSATION = "rag_conversation";
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

export function readTurns() {
  try {
    return JSON.parse(read(TURNS) ?? "[]");
  } catch {
    return [];
  }
}

export function forget() {
  write(DRAFT, null);
  write(TURNS, null);
  write(CONVERSATION, null);
  history.replaceState(null, "", location.pathname); // the address named what was open
}
