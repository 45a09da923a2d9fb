"""The double of Ollama as a process that answers at a fixed pace: `python -m tests.soak.paced_ollama WORDS SECONDS`.

Prints its URL, then serves until it is killed. Each answer has so many words and as many pauses of so many seconds.
"""

from __future__ import annotations

import sys
import threading

from tests.doubles.ollama import OllamaDouble

if __name__ == "__main__":
    words, seconds = int(sys.argv[1]), float(sys.argv[2])
    double = OllamaDouble()
    double.answer = "The limit of this rule is as the passage says, in euros a day [C1]. " + "It holds. " * words
    double.answer = " ".join(double.answer.split()[:words])
    double.token_delay = seconds
    double.start()
    print(double.url, flush=True)  # noqa: T201 - whoever started it waits for this line
    threading.Event().wait()
