"""Indexes for many users and many documents: who reads which corpora, the newest documents of a corpus, and those of
a source were found by passing over all of them."""

from rag_service.store.migrations.sql import run_sql

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    run_sql(__file__)
