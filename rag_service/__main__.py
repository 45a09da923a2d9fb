"""The command line as `python -m rag_service`."""

from rag_service.cli import main

main()
