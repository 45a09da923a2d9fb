"""Users, corpora, documents, chunks and the lexical index, under row-level security."""

from rag_service.store.migrations.sql import run_sql

revision = "0001"
down_revision = None


def upgrade() -> None:
    run_sql(__file__)
