// Every call to the service, at an address relative to the page's: a proxy may serve it below a path.
// A failure is always an ApiError that says what happened and what to do.

import { authorization, expire, whoAmI as userOf } from "./session.js";
import { readEvents } from "./stream.js";

export class ApiError extends Error {
  /** @param problem a problem+json body (RFC 9457), or the same shape made up here */
  constructor(problem) {
    super(problem.detail ?? problem.title ?? problem.code);
    Object.assign(this, { code: problem.code, status: problem.status ?? 0, problem });
  }
}

export const networkError = () => new ApiError({ code: "network" });
export const brokenStream = () => new ApiError({ code: "broken" });

const JSON_TYPE = { "Content-Type": "application/json" };
const CODES = { 401: "not_authenticated", 403: "not_permitted", 404: "not_found", 413: "too_large", 415: "unsupported_media_type" };

/** The problem in a reply, also when a proxy in between answered in its own words. */
export function readProblem(status, text) {
  try {
    const problem = JSON.parse(text);
    if (typeof problem?.code === "string") return new ApiError({ status, ...problem });
  } catch {
    // not ours: judged by the status alone
  }
  const code = CODES[status] ?? (status >= 500 ? "internal_error" : "invalid_input");
  return new ApiError({ code, status, detail: `HTTP ${status}` });
}

/** @param {string} url @param {RequestInit} options */
async function call(url, { headers, ...options } = {}) {
  let response;
  try {
    response = await fetch(url, { credentials: "same-origin", headers: { ...authorization(), ...headers }, ...options });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw networkError();
  }
  if (response.ok) return response;
  if (response.status === 401) expire();
  throw readProblem(response.status, await response.text().catch(() => ""));
}

/** What is at an address below /api/v1. @param query its parameters; null ones are left out @param signal aborts it */
export async function read(path, query = {}, signal = null) {
  const given = Object.entries(query).filter(([, value]) => value !== null);
  const search = given.length ? `?${new URLSearchParams(given)}` : "";
  return (await call(`api/v1${path}${search}`, { signal })).json();
}

/** Change something. Returns the reply's body, null when it has none. */
export async function change(method, path, body) {
  const content = body === undefined ? {} : { headers: JSON_TYPE, body: JSON.stringify(body) };
  const response = await call(`api/v1${path}`, { method, ...content });
  return response.status === 204 ? null : response.json();
}

/** Delete what is at an address; somebody else may have been quicker. */
export async function erase(path) {
  await change("DELETE", path).catch((error) => {
    if (error.code !== "not_found") throw error;
  });
}

/** What is at an address as it is. */
export const readBlob = async (path) => (await call(`api/v1${path}`)).blob();

/** Save what is at an address as a file. Fetched, not linked: a link cannot carry the key. */
export async function download(path, name) {
  saveAs(await readBlob(path), name);
}

/** Bytes [start, end) of a document's original, with the hash and the size of the whole. */
export async function readOriginal(documentId, start, end) {
  const headers = { Range: `bytes=${start}-${end - 1}` };
  const response = await call(`api/v1/documents/${encodeURIComponent(documentId)}/original`, { headers });
  const data = new Uint8Array(await response.arrayBuffer());
  const size = Number(/\/(\d+)$/.exec(response.headers.get("Content-Range"))?.[1] ?? data.length);
  return { data, size, hash: response.headers.get("ETag")?.slice(1, -1) };
}

/** Give a blob to the visitor as a file. */
export function saveAs(blob, name) {
  const url = URL.createObjectURL(blob);
  const link = Object.assign(document.createElement("a"), { href: url, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

/** The user that a credential stands for; ApiError when it is not accepted. */
export async function tryCredential(candidate) {
  let response;
  try {
    response = await fetch("api/v1/users/me", { headers: authorization(candidate) });
  } catch {
    throw networkError();
  }
  if (!response.ok) throw readProblem(response.status, await response.text().catch(() => ""));
  return response.json();
}

export const whoAmI = () => userOf(() => read("/users/me"));

/**
 * The events of an answer from documents, kept; as `answerEvents`.
 *
 * @param {string} query
 * @param {Conversation} conversation
 * @param {Filters | null} filters null: all documents
 * @param {AbortSignal} signal
 */
export const ask = (query, conversation, filters, signal) =>
  answerEvents("/query/answer/stream", { query, keep: true, ...conversation, ...filters }, signal);

/**
 * The events of an agent's answer; as `answerEvents`.
 *
 * @param {string} agentId
 * @param {Conversation} conversation
 * @param {AbortSignal} signal
 */
export const chat = (agentId, conversation, signal) =>
  answerEvents(`/agents/${encodeURIComponent(agentId)}/chat`, { ...conversation, stream: true }, signal);

/**
 * Yield {event, data} up to and without `done`.
 * Throws ApiError: of the service's own `error` event, or when the stream breaks; AbortError when stopped.
 */
async function* answerEvents(path, body, signal) {
  const response = await call(`api/v1${path}`, {
    method: "POST",
    headers: { ...JSON_TYPE, Accept: "text/event-stream" },
    body: JSON.stringify(body),
    signal,
  });
  try {
    for await (const { event, data } of readEvents(response.body)) {
      if (event === "done") return;
      if (event === "error") {
        if (data.code === "not_authenticated") expire();
        throw new ApiError(data);
      }
      yield { event, data };
    }
  } catch (error) {
    if (error instanceof ApiError || signal.aborted) throw error;
    throw brokenStream();
  }
  throw brokenStream();
}

/** Characters [start, end) of a document's stored text. */
export function readText(documentId, start, end, signal) {
  return read(`/documents/${encodeURIComponent(documentId)}/text`, { start, end }, signal);
}

/** The state of the service; also when it is down, which it says with 503. */
export async function readiness() {
  const response = await fetch("health/ready").catch(() => null);
  return response?.json().catch(() => null) ?? null;
}

/**
 * Send a file to a corpus. Returns how its upload fares. XMLHttpRequest, because fetch does not tell how much
 * has been sent.
 *
 * @param name to store it under
 * @param path of a file in a folder, with its name
 * @param ttlSeconds lifetime; null: as the corpus says
 * @param tags separated by commas
 */
export function upload(corpusId, file, { name = file.name, path = null, ttlSeconds = null, tags = "", onProgress, signal }) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    const form = new FormData();
    form.append("file", file, name);
    if (path !== null) form.append("path", path);
    if (ttlSeconds !== null) form.append("ttlSeconds", String(ttlSeconds));
    if (tags) form.append("tags", tags);
    request.open("POST", `api/v1/corpora/${encodeURIComponent(corpusId)}/documents`);
    for (const [header, value] of Object.entries(authorization())) request.setRequestHeader(header, value);
    request.upload.addEventListener("progress", (event) => {
      if (event.lengthComputable) onProgress(event.loaded / event.total);
    });
    request.addEventListener("load", () => {
      if (request.status >= 200 && request.status < 300) return resolve(JSON.parse(request.responseText));
      if (request.status === 401) expire();
      return reject(readProblem(request.status, request.responseText));
    });
    request.addEventListener("error", () => reject(networkError()));
    request.addEventListener("abort", () => reject(new DOMException("", "AbortError")));
    signal.addEventListener("abort", () => request.abort());
    request.send(form);
  });
}
