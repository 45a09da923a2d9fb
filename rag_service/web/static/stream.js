// Server-sent events over fetch: EventSource cannot POST.
// https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream

/** Yield {event, data} of a body; `data` is parsed as JSON. A last event without its blank line is dropped. */
export async function* readEvents(body) {
  let event = "message";
  let data = [];
  for await (const line of readLines(body)) {
    if (line === "") {
      if (data.length) yield { event, data: JSON.parse(data.join("\n")) };
      event = "message";
      data = [];
    } else if (!line.startsWith(":")) {
      const colon = line.indexOf(":");
      const field = colon < 0 ? line : line.slice(0, colon);
      const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
      if (field === "event") event = value;
      if (field === "data") data.push(value);
    }
  }
}

async function* readLines(body) {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      rest += decoder.decode(value, { stream: true });
      const lines = rest.split(/\r\n|\n|\r(?!$)/); // a CR at the end may be half of a CRLF
      rest = lines.pop();
      yield* lines;
    }
  } finally {
    reader.cancel().catch(() => {}); // the reader may have left early, by Stop or an error event
  }
}
