// Who answers: all documents, or one of the agents. The choice is hidden where there is none.

import { read, whoAmI } from "./api.js";
import { byId, el } from "./dom.js";
import { upright } from "./i18n.js";
import { read as recall, write } from "./storage.js";

const CHOSEN = "rag_agent";
let agents = new Map(); // id → agent
let loaded = null;

/** The agent that is to answer, {id, name}; null for all documents. */
export function chosenAgent() {
  const agent = agents.get(byId("agent").value);
  return agent ? { id: agent.id, name: agent.name } : null;
}

export async function startAgents() {
  byId("agent").addEventListener("change", () => {
    write(CHOSEN, byId("agent").value);
    describe();
  });
  await whoAmI().catch(() => null);
  await loadAgents();
}

/** Have an agent answer, by id; null, or one that is not there: all documents. Returns it as `chosenAgent`. */
export async function chooseAgent(id) {
  await loaded;
  byId("agent").value = agents.has(id) ? id : "";
  write(CHOSEN, byId("agent").value);
  describe();
  return chosenAgent();
}

/** Fetch the agents again; called when they were changed. */
export const loadAgents = () => (loaded = load());

async function load() {
  const select = byId("agent");
  const found = await read("/agents", { limit: 500 }).catch(() => null);
  if (!found) return; // the question box works without
  agents = new Map(found.items.filter(({ active }) => active).map((agent) => [agent.id, agent]));
  const chosen = recall(CHOSEN) ?? "";
  const [all] = select.options;
  select.replaceChildren(all, ...[...agents.values()].map(({ id, name }) => el("option", { value: id }, upright(name))));
  select.value = agents.has(chosen) ? chosen : "";
  byId("agent-choice").hidden = !agents.size;
  describe();
}

function describe() {
  byId("agent").title = agents.get(byId("agent").value)?.description ?? "";
  document.dispatchEvent(new Event("agent-chosen"));
}
