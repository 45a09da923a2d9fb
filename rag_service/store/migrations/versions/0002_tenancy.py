"""Keys, agents, conversations, uploads and the job queue: many people on one database.

The queue's schema comes from the installed procrastinate package. A release of it that changes its
schema needs a revision of ours; a test compares the package's newest migration with `QUEUE_SCHEMA`.
"""

from typing import Any

from alembic import op
from procrastinate.schema import SchemaManager

from rag_service.store.migrations.sql import run_sql

revision = "0002"
down_revision = "0001"

QUEUE_SCHEMA = "03.04.00_50_post_add_retry_failed_job_procedure.sql"  # newest migration when this was written


def upgrade() -> None:
    queue_schema: str = SchemaManager.get_schema()
    driver_connection: Any = op.get_bind().connection.driver_connection
    driver_connection.execute("SET LOCAL search_path = rag, public")  # its names are not qualified
    driver_connection.execute(queue_schema)
    driver_connection.execute("RESET search_path")
    run_sql(__file__)
