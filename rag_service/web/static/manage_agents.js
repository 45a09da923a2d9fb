// Agents: made by administrators; users lend their personal corpora to those that take them.

import { loadAgents } from "./agents.js";
import { change, erase, read } from "./api.js";
import { titleOf } from "./corpora.js";
import { confirmDialog, formDialog } from "./dialogs.js";
import { t } from "./i18n.js";
import { chip, makeRow } from "./listing.js";
import { Frame } from "./manage_frame.js";
import { isAdministrator, mayWrite } from "./session.js";

const PROVIDERS = ["extractive", "ollama", "openai_like"];
const NEW = { name: "", description: "", systemPrompt: "", modelProvider: null, modelName: null, temperature: null, maxTokens: null, allowsPersonalCorpus: false, active: true };

export function makeList(section, user) {
  const manages = isAdministrator(user);
  const frame = new Frame(section, {
    title: t("manage_agents"),
    lead: t("agents_lead"),
    buttons: [manages && { label: t("agent_new"), shape: "plus", onclick: create }],
    listing: { empty: t("agents_none"), load: (slice, signal) => read("/agents", slice, signal), row },
  });

  function row(agent) {
    const { name, description, active, modelProvider, modelName, allowsPersonalCorpus } = agent;
    const mayAssign = mayWrite(user) && (manages || allowsPersonalCorpus);
    return makeRow({
      icon: "agent",
      title: name,
      state: active ? null : chip("warn", t("inactive")),
      about: [
        description,
        modelName ?? modelProvider ?? t("model_usual"),
        allowsPersonalCorpus ? t("agent_takes_personal") : null,
      ],
      actions: [
        mayAssign && { icon: "files", label: t("agent_corpora"), onclick: () => frame.trying(() => assign(agent)) },
        manages && { icon: "edit", label: t("edit"), onclick: () => edit(agent) },
        manages && { icon: "trash", label: t("delete"), onclick: () => remove(agent) },
      ],
    });
  }

  async function settle(words) {
    await loadAgents(); // the choice above the question box
    await frame.changed(words);
  }

  async function edit(agent) {
    const saved = await formDialog({
      title: t("edit_named", { name: agent.name }),
      fields: fieldsOf(agent),
      action: t("save"),
      save: (values) => change("PUT", `/agents/${agent.id}`, bodyOf(values)),
    });
    await settle(saved ? t("saved") : ""); // refused, it may be gone
  }

  /** With the corpora that it answers from: without one it has nothing to say. */
  async function create() {
    const { items } = await read("/corpora", { limit: 500, kind: "global" });
    const [name, description, ...others] = fieldsOf(NEW);
    let made = null; // by an earlier try that failed at a corpus
    const saved = await formDialog({
      title: t("agent_new"),
      fields: [name, description, ...(items.length ? [corporaField(items, [])] : []), ...others],
      action: t("create"),
      save: async ({ corpusId = [], ...values }) => {
        made = made ? await change("PUT", `/agents/${made.id}`, bodyOf(values)) : await change("POST", "/agents", bodyOf(values));
        for (const id of corpusId) await change("PUT", `/agents/${made.id}/corpora/${id}`);
        return made;
      },
    });
    if (saved) await settle(t("saved"));
  }

  /** Tick the corpora that an agent answers from. */
  async function assign(agent) {
    const [{ items }, { items: assigned }] = await Promise.all([
      read("/corpora", { limit: 500 }),
      read(`/agents/${agent.id}/corpora`),
    ]);
    const offered = items.filter(({ kind }) => (kind === "personal" ? agent.allowsPersonalCorpus : manages));
    const before = new Set(assigned.map(({ id }) => id));
    const saved = await formDialog({
      title: t("agent_corpora_of", { name: agent.name }),
      text: t(offered.length ? "agent_corpora_text" : "corpora_none"),
      fields: offered.length ? [corporaField(offered, [...before])] : [],
      action: t("save"),
      save: async ({ corpusId = [] }) => {
        const wanted = new Set(corpusId);
        for (const { id } of offered) {
          if (wanted.has(id) !== before.has(id)) await change(wanted.has(id) ? "PUT" : "DELETE", `/agents/${agent.id}/corpora/${id}`);
        }
        return true;
      },
    });
    await frame.changed(saved ? t("saved") : ""); // refused, it may be gone
  }

  async function remove(agent) {
    const removed = await confirmDialog({
      title: t("delete_named", { name: agent.name }),
      text: t("agent_delete_text"),
      action: t("delete"),
      act: () => erase(`/agents/${agent.id}`),
    });
    if (removed) await settle(t("deleted", { name: agent.name }));
  }

  return frame.show();
}

const toNumber = (value) => (value === "" ? null : Number(value));

const bodyOf = (values) => ({
  ...values,
  modelProvider: values.modelProvider || null,
  modelName: values.modelName || null,
  temperature: toNumber(values.temperature),
  maxTokens: toNumber(values.maxTokens),
});

const corporaField = (offered, value) => ({
  name: "corpusId", type: "checkboxes", label: t("agent_answers_from"), value,
  options: offered.map((corpus) => [corpus.id, titleOf(corpus)]),
});

const fieldsOf = (agent) => [
  { name: "name", label: t("name"), value: agent.name, required: true, maxLength: 200 },
  { name: "description", label: t("description"), value: agent.description, maxLength: 2000 },
  { name: "systemPrompt", type: "textarea", label: t("system_prompt"), hint: t("system_prompt_hint"), value: agent.systemPrompt, maxLength: 20000 },
  { name: "modelProvider", type: "select", label: t("provider"), value: agent.modelProvider ?? "",
    options: [["", t("model_usual")], ...PROVIDERS.map((one) => [one, one])] },
  { name: "modelName", label: t("model_name"), hint: t("model_name_hint"), value: agent.modelName, maxLength: 200 },
  { name: "temperature", type: "number", label: t("temperature"), hint: t("as_usual_hint"), value: agent.temperature, min: 0, max: 2, step: 0.1 },
  { name: "maxTokens", type: "number", label: t("max_tokens"), hint: t("as_usual_hint"), value: agent.maxTokens, min: 16, max: 1000000, step: 1 },
  { name: "allowsPersonalCorpus", type: "checkbox", label: t("agent_allows_personal"), value: agent.allowsPersonalCorpus },
  { name: "active", type: "checkbox", label: t("agent_active"), value: agent.active },
];
