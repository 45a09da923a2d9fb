"""The page: rendered on the server, moved by plain ES modules, no build step, nothing from elsewhere."""
