"""Where documents come from: folders, web sites, object stores; and sync, which keeps a corpus equal to one."""
