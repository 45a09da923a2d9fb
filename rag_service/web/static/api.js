// Every call to the service. A failure is always an ApiError that says what happened and what to do.

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

const CODES = { 401: "not_authenticated", 403: "not_permitted", 413: "too_large", 415: "unsupported_media_type" };

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

async function call(url, options) {
  let response;
  try {
    response = await fetch(url, { credentials: "same-origin", ...options });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw networkError();
  }
  if (!response.ok) throw readProblem(response.status, await response.text().catch(() => ""));
  return response;
}

/**
 * Ask, and yield {event, data} up to and without `done`.
 * Throws ApiError: of the service's own `error` event, or when the stream breaks; AbortError when stopped.
 */
export async function* ask(query, signal) {
  const response = await call("/api/v1/query/answer/stream", {
    method: "POST",
    headers: { "Content-Type": "application/json", Accept: "text/event-stream" },
    body: JSON.stringify({ query }),
    signal,
  });
  try {
    for await (const { event, data } of readEvents(response.body)) {
      if (event === "done") return;
      if (event === "error") throw new ApiError(data);
      yield { event, data };
    }
  } catch (error) {
    if (error instanceof ApiError || signal.aborted) throw error;
    throw brokenStream();
  }
  throw brokenStream();
}

/** Characters [start, end) of a document's stored text. */
export async function readText(documentId, start, end) {
  const query = new URLSearchParams({ start, end });
  return (await call(`/api/v1/documents/${encodeURIComponent(documentId)}/text?${query}`)).json();
}

/** The state of the service; also when it is down, which it says with 503. */
export async function readiness() {
  const response = await fetch("/health/ready").catch(() => null);
  return response?.json().catch(() => null) ?? null;
}

/** Upload one file. XMLHttpRequest, because fetch does not tell how much has been sent. */
export function upload(file, { onProgress, signal }) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    const form = new FormData();
    form.append("file", file, file.name);
    request.open("POST", "/api/ingest");
    request.upload.addEventListener("progress", (event) => {
      if (event.lengthComputable) onProgress(event.loaded / event.total);
    });
    request.addEventListener("load", () => {
      if (request.status >= 200 && request.status < 300) resolve(JSON.parse(request.responseText));
      else reject(readProblem(request.status, request.responseText));
    });
    request.addEventListener("error", () => reject(networkError()));
    request.addEventListener("abort", () => reject(new DOMException("", "AbortError")));
    signal.addEventListener("abort", () => request.abort());
    request.send(form);
  });
}
