"""${message}"""

from rag_service.store.migrations.sql import run_sql

revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}


def upgrade() -> None:
    run_sql(__file__)
