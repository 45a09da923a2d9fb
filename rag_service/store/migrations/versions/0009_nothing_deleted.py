"""Documents are written without looking through the postings for those of none."""

from rag_service.store.migrations.sql import run_sql

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    run_sql(__file__)
