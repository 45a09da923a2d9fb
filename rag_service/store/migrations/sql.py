"""Runs the `.sql` file that stands beside a migration."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from alembic import context, op


def run_sql(migration_file: str) -> None:
    """Execute the SQL beside a migration with its placeholders filled.

    `{role}` becomes the quoted name of the unprivileged role, `{dimension}` the length of the
    vectors; both come from the caller of the migration and were validated there.
    """
    sql = Path(migration_file).with_suffix(".sql").read_text(encoding="utf-8")
    for name, value in context.config.attributes["parameters"].items():
        sql = sql.replace("{" + name + "}", value)
    # The driver's own cursor: SQLAlchemy would take ":name" in the text for a parameter.
    driver_connection: Any = op.get_bind().connection.driver_connection
    driver_connection.execute(sql)
