"""Which corpora somebody reads is found by index: with a personal corpus for each of 50,000 users, every
statement of a search passed over all of them."""

from rag_service.store.migrations.sql import run_sql

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    run_sql(__file__)
