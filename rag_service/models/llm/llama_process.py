"""The process that runs llama.cpp's server for `gguf.py`, as a script of its own: nothing here imports the service.

It reads one line from its standard input, the parameters as JSON, loads the model, prints one line with the server's
address, and ends when the standard input closes: whoever started it has ended then, for whatever reason.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
from typing import Any

_ERRORS_ONLY = 1  # llama.cpp's levels of logging


def main() -> None:
    # Whatever llama.cpp prints goes to standard error, so that standard output has the one line.
    output = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    wanted = json.loads(sys.stdin.buffer.readline())
    threading.Thread(target=_end_with_parent, daemon=True).start()  # a model takes its time to load
    try:
        server = _start(wanted)
    except (ImportError, RuntimeError, TypeError) as error:
        print(error, file=sys.stderr, flush=True)  # noqa: T201 - behind what llama.cpp has said
        os._exit(1)
    with contextlib.suppress(BrokenPipeError):
        output.write(json.dumps({"url": server.listening_address}) + "\n")
        output.flush()
    threading.Event().wait()


def _start(wanted: dict[str, Any]) -> Any:
    import xllamacpp

    parameters = xllamacpp.CommonParams()
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = 0  # any that is free
    parameters.api_keys = [wanted["key"]]  # else every process and web page on this machine could use it
    parameters.ui = False
    parameters.verbosity = _ERRORS_ONLY
    parameters.cache_ram_mib = 0  # up to 8 GB of prompts that were answered before
    parameters.model.path = wanted["path"]
    parameters.model_alias = {wanted["name"]}
    parameters.n_parallel = wanted["slots"]
    parameters.n_ctx = wanted["window"] * wanted["slots"]  # the slots share it
    if wanted["threads"] is not None:
        parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = wanted["threads"]
    if wanted["gpu_layers"] is not None:
        parameters.n_gpu_layers = wanted["gpu_layers"]
    if wanted["chat_template"] is not None:
        parameters.chat_template = wanted["chat_template"]
    return xllamacpp.Server(parameters)


def _end_with_parent() -> None:
    sys.stdin.buffer.read()
    os._exit(0)  # the server's own end can wait for a model that is being loaded


if __name__ == "__main__":
    main()
