"""Each corpus counts the changes of what a search finds in it, so that a replica can be compared with its primary."""

from rag_service.store.migrations.sql import run_sql

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    run_sql(__file__)
