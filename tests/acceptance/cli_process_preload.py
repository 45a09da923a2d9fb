"""What `cli_process` has loaded before the first command: modules alone, no threads, no connections."""

import rag_service.api.mcp.server
import rag_service.app
import rag_service.cli
import rag_service.cli.server
import rag_service.ingest.worker  # noqa: F401
