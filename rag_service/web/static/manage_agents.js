// Agents: made by administrators; users lend their personal corpora to those that take them.

import { loadAgents } from "./agents.js";
import { change, read } from "./api.js";
import { kindWords } from "./corpora.js";
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
    buttons: [manages && { label: t("agent_new"), shape: "plus", onclick: () => edit(null) }],
    listing: { empty: t("agents_none"), load: (slice) => read("/agents", slice), row },
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
      title: agent ? t("edit_named", { name: agent.name }) : t("agent_new"),
      fields: fieldsOf(agent ?? NEW),
      action: agent ? t("save") : t("create"),
      save: (values) => {
        const body = { ...values, modelProvider: values.modelProvider || null, modelName: values.modelName || null,
          temperature: toNumber(values.temperature), maxTokens: toNumber(values.maxTokens) };
        return agent ? change("PUT", `/agents/${agent.id}`, body) : change("POST", "/agents", body);
      },
    });
    if (!saved) return;
    await settle(t("saved"));
    if (!agent) await frame.trying(() => assign(saved)); // without a corpus it has nothing to answer from
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
      fields: offered.length
        ? [{ name: "corpusId", type: "checkboxes", label: t("manage_corpora"), value: [...before],
            options: offered.map((corpus) => [corpus.id, `${corpus.name} · ${kindWords(corpus)}`]) }]
        : [],
      action: t("save"),
      save: async ({ corpusId = [] }) => {
        const wanted = new Set(corpusId);
        for (const { id } of offered) {
          if (wanted.has(id) !== before.has(id)) await change(wanted.has(id) ? "PUT" : "DELETE", `/agents/${agent.id}/corpora/${id}`);
        }
        return true;
      },
    });
    if (saved) await frame.changed(t("saved"));
  }

  async function remove(agent) {
    const removed = await confirmDialog({
      title: t("delete_named", { name: agent.name }),
      text: t("agent_delete_text"),
      action: t("delete"),
      act: () => change("DELETE", `/agents/${agent.id}`),
    });
    if (removed) await settle(t("deleted", { name: agent.name }));
  }

  return frame.show();
}

const toNumber = (value) => (value === "" ? null : Number(value));

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
