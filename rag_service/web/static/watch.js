// What is looked at again and again until it is done: a list that moves, and how uploads fare. Of those a few at a time, so
// that hundreds of files never take all of the browser's connections; a server that is away costs nothing but time.

import { read } from "./api.js";

const PAUSE = 600; // milliseconds between two rounds
const AT_ONCE = 4;
const FINAL = new Set(["indexed", "failed"]);
const watched = new Map(); // upload id → those who are told its state
let working = false;

/** Look again and again, each time after a pause, as long as `look` says that there is more to see. */
export async function poll(look, pause) {
  do await new Promise((resolve) => setTimeout(resolve, pause));
  while (await look());
}

export const isFinal = ({ status }) => FINAL.has(status);

/** Call `tell(state, error)` with the upload's state at each look, until it is final; with an ApiError when it is gone. */
export function watch(uploadId, tell) {
  watched.set(uploadId, [...(watched.get(uploadId) ?? []), tell]);
  if (!working) work();
}

async function work() {
  working = true;
  await poll(async () => {
    await Promise.all([...watched].slice(0, AT_ONCE).map(([id]) => look(id)));
    return watched.size > 0;
  }, PAUSE);
  working = false;
}

async function look(id) {
  try {
    const upload = await read(`/uploads/${encodeURIComponent(id)}`);
    const told = watched.get(id);
    watched.delete(id);
    if (!isFinal(upload)) watched.set(id, told); // last in line again
    for (const tell of told) tell(upload, null);
  } catch (error) {
    if (!error.problem) throw error;
    if (error.status >= 400 && error.status < 500 && ![401, 429].includes(error.status)) {
      const told = watched.get(id);
      watched.delete(id);
      for (const tell of told) tell(null, error);
    }
  }
}
