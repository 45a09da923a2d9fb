"""PostgreSQL: sessions, migrations, documents, search, accounts, replication."""
