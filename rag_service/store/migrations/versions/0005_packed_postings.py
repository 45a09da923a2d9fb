"""Postings packed into bytes and held by their index, so that a term is read from a few pages."""

from rag_service.store.migrations.sql import run_sql

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    run_sql(__file__)
