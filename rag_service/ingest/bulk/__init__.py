"""Bulk ingestion on several processes or machines."""
