"""How much of its quota each caller has used, for all replicas."""

from rag_service.store.migrations.sql import run_sql

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    run_sql(__file__)
