// The corpora that the user may read, and which of them they may write to.

import { change, read, whoAmI } from "./api.js";
import { t, upright } from "./i18n.js";
import { isAdministrator, mayWrite } from "./session.js";

const DEFAULT = "documents"; // as the service calls the corpus of whoever names none

/** Whether documents may be added to a corpus and taken from it. */
export const isWritable = (user, corpus) =>
  mayWrite(user) && corpus.active && (corpus.kind === "personal" || isAdministrator(user));

/** The corpora, the default one first. It is among them before it exists, with `id` null: see `idOf`. */
export async function listCorpora() {
  const user = await whoAmI();
  const { items } = await read("/corpora", { limit: 500 });
  const kind = isAdministrator(user) ? "global" : "personal";
  const first = items.find((corpus) => corpus.name === DEFAULT && corpus.kind === kind);
  const others = items.filter((corpus) => corpus !== first);
  if (first) return [first, ...others];
  return mayWrite(user) ? [{ id: null, name: DEFAULT, kind, active: true, ttlSeconds: null }, ...others] : others;
}

/** The user's own corpus, which nobody else reads; with `id` null before it exists. */
export async function ownCorpus() {
  const { items } = await read("/corpora", { limit: 500 });
  const isOwn = ({ name, kind, active }) => name === DEFAULT && kind === "personal" && active;
  return items.find(isOwn) ?? { id: null, name: DEFAULT, kind: "personal" };
}

/** A corpus's id; one that does not exist yet is made. */
export async function idOf(corpus) {
  if (corpus.id === null) Object.assign(corpus, await make(corpus));
  return corpus.id;
}

let made = null; // id

/** Note that the user has made a corpus: documents come next. */
export const noteMade = ({ id }) => (made = id);

/** The id of the corpus that the user has made last, told once; else null. */
export function takeMade() {
  const id = made;
  made = null;
  return id;
}

async function make({ name, kind }) {
  try {
    return await change("POST", "/corpora", { name, kind });
  } catch (error) {
    const [first] = error.code === "conflict" ? await listCorpora() : [null]; // somebody else was quicker
    if (!first?.id) throw error;
    return first;
  }
}

export const kindWords = (corpus) => t(`kind_${corpus.kind}`);

/** A corpus among others: "handbook · global". */
export const titleOf = (corpus) => `${upright(corpus.name)} · ${kindWords(corpus)}`;
