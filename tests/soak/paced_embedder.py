"""The double of Ollama as a process that embeds at a fixed pace: `python -m tests.soak.paced_embedder SECONDS`.

Prints its URL, then serves until it is killed. Any number of calls wait beside each other, as at a service
that scales; none is answered before its time.
"""

from __future__ import annotations

import sys
import threading

from tests.doubles.ollama import EMBED, OllamaDouble, embed

_CALLS = 100_000  # more than any run makes

if __name__ == "__main__":
    double = OllamaDouble()
    double.script(EMBED, *[embed(delay=float(sys.argv[1]))] * _CALLS)
    double.start()
    print(double.url, flush=True)  # noqa: T201 - whoever started it waits for this line
    threading.Event().wait()
