// A kept conversation as the page shows it: the latest questions with their answers, earlier ones on demand.

import { read } from "./api.js";

const MESSAGES = 60; // fetched at once: thirty questions with their answers
const MOST = 500; // messages that the service gives at once

/** {agentId, title, shared, owner, turns, from}: `turns` are what `Turn.restore` takes, `from` is how many messages are before them. */
export async function loadConversation(id) {
  const [conversation, { total }] = await Promise.all([
    read(`/conversations/${encodeURIComponent(id)}`),
    read(`/conversations/${encodeURIComponent(id)}/messages`, { limit: 1 }),
  ]);
  return { ...conversation, ...(await loadBefore(id, total)) };
}

/** The turns of the messages before the one numbered `end`, as {turns, from}. */
export async function loadBefore(id, end) {
  const from = Math.max(0, end - MESSAGES);
  if (from === end) return { turns: [], from };
  const { items } = await read(`/conversations/${encodeURIComponent(id)}/messages`, { offset: from, limit: end - from });
  return { turns: pair(items), from };
}

/** What has become of the documents that the answers from message `from` on cite: by answer, by document. */
export async function loadChanges(id, from) {
  const { items } = await read(`/conversations/${encodeURIComponent(id)}/messages`, { offset: from, limit: MOST });
  return new Map(items.map(({ answerId, sourceChanges }) => [answerId, sourceChanges]));
}

/** What `Turn.restore` takes. Two tabs may have asked at the same time: answers belong to questions in their order. */
export function pair(messages) {
  const questions = messages.filter(({ role }) => role === "user");
  const answers = messages.filter(({ role }) => role === "assistant");
  return answers.map((answer, i) => turnOf(questions[i]?.content ?? "", answer));
}

function turnOf(question, { content, citations, answerId, details, sourceChanges }) {
  const evidence = { sources: details.sources ?? [], contextUsed: details.contextUsed ?? [], citations, flagged: details.flagged ?? null, changes: sourceChanges };
  const isBare = !details.decision; // kept before the service noted more than the citations
  const final = isBare ? null : { ...details, answer: content, citations, answerId };
  return { question, final, text: content, evidence, feedback: null, replaces: answerId, isBare };
}
