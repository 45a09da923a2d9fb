"""Which documents were made by other settings than those in force, for whoever has them ingested again."""

from rag_service.store.migrations.sql import run_sql

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    run_sql(__file__)
