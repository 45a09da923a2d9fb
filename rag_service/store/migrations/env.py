"""Alembic's entry point. The caller passes an open connection and the parameters in `attributes`."""

from alembic import context

connection = context.config.attributes["connection"]
context.configure(connection=connection, version_table="schema_version", version_table_schema="public")
with context.begin_transaction():
    context.run_migrations()
