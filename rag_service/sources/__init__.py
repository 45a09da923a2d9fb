"""Where documents come from: folders, sites, object stores, readers; and sync, which keeps a corpus equal to one."""
