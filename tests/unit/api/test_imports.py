"""The routes can be loaded without the engine."""

from __future__ import annotations

import subprocess
import sys


def test_importing_the_application_loads_neither_llama_index_nor_torch() -> None:
    code = (
        "import sys, rag_service.api.application\n"
        "heavy = {'llama_index', 'torch', 'transformers', 'numpy', 'sqlalchemy', 'psycopg'} & set(sys.modules)\n"
        "sys.exit(', '.join(sorted(heavy)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
