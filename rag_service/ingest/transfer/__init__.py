"""A corpus as one file: exported, and imported into this service or another one."""
