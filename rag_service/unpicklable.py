"""LlamaIndex objects that belong to this process say so when somebody pickles them."""

from __future__ import annotations

from typing import NoReturn, SupportsIndex


class Unpicklable:
    """First base of LlamaIndex objects that hold connections, threads or an event loop.

    LlamaIndex's own pickling deletes what cannot be pickled from the living object (`BaseComponent.__getstate__`), and
    the workers of `IngestionPipeline.run(num_workers=2)` die of what is left while the caller waits for ever.
    """

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise TypeError(
            f"{type(self).__name__} cannot be pickled: it belongs to the process that opened it. Run an"
            " IngestionPipeline with num_workers=None; in another process, call open_service() there."
        )
