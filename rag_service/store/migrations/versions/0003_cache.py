"""A cache of passage embeddings, keyed by hash and separate for each tenant."""

from rag_service.store.migrations.sql import run_sql

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    run_sql(__file__)
