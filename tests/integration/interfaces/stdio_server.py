"""A program that serves scripted services over standard input and output; started by the tests.

The environment variable WHO names the credential. `other` sees nothing, `broken` fails, `stranger` is refused.
"""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace

from rag_service.api.mcp.server import serve_stdio
from rag_service.errors import ModelError
from rag_service.settings import Settings
from tests.integration.interfaces.people import identify, only_for_admin
from tests.unit.api.samples import Script


def main() -> None:
    who = os.environ["WHO"]
    script = Script(events=[ModelError("secret internals")]) if who == "broken" else Script()
    services = replace(script.services(Settings()), authenticate=identify)
    if who != "broken":
        services = only_for_admin(services)
    asyncio.run(serve_stdio(services, {"authorization": f"Bearer {'admin' if who == 'broken' else who}"}))


if __name__ == "__main__":
    main()
