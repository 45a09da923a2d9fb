// What the scripts find in the page, beyond plain elements and events.

/** Elements with an id; those that are not listed are an HTMLElement. */
interface PageElements {
  "account-name": HTMLInputElement;
  agent: HTMLSelectElement;
  "ask-form": HTMLFormElement;
  attach: HTMLInputElement;
  "conversations-search": HTMLInputElement;
  "conversations-shared": HTMLInputElement;
  corpus: HTMLSelectElement;
  credential: HTMLInputElement;
  "documents-failed": HTMLInputElement;
  "documents-search": HTMLInputElement;
  "documents-sort": HTMLSelectElement;
  files: HTMLInputElement;
  folder: HTMLInputElement;
  panel: HTMLDialogElement;
  password: HTMLInputElement;
  "password-form": HTMLFormElement;
  question: HTMLTextAreaElement;
  send: HTMLButtonElement;
  "sign-in": HTMLDialogElement;
  "sign-in-form": HTMLFormElement;
  stop: HTMLButtonElement;
  strings: HTMLTemplateElement;
  "upload-tags": HTMLInputElement;
  "uploads-done": HTMLDetailsElement;
}

interface DocumentEventMap {
  attached: CustomEvent<string>;
  "conversation-deleted": CustomEvent<string>;
  "conversation-shared": CustomEvent<{ id: string; shared: boolean }>;
}

/** What was said before a question, to whom it is asked. */
interface Conversation {
  messages: { role: string; content: string }[];
  conversationId: string | null;
  replaces?: string | null; // the answer whose place the new one takes
}

interface Named {
  id: string;
  name: string;
}

/** What a question is limited to; empty: not at all. */
interface Scope {
  corpora: Named[];
  documents: Named[];
  tags: string[];
}

/** The same as the API takes it. */
interface Filters {
  corpusIds: string[];
  documentIds: string[];
  tags: string[];
}

/** A document to be shown as a whole. */
interface Shown extends Named {
  marked?: { quote: string; start: number; end: number } | null;
  contentHash: string | null;
  language?: string | null;
  location?: any; // as of a citation
  chunkId?: string; // of a citation in it
}

/** Where a file goes. */
interface Target {
  corpus: () => string | Promise<string>; // gives its id
  into?: string; // its name among all
  name?: string | null; // to store it under; null: its own
  path?: string | null; // in a folder
  ttlSeconds?: number | null; // lifetime; null: as the corpus says
  tags?: string; // separated by commas
  ended: (upload: any) => void; // called whenever it has come to its end
}
