"""What goes to a model: templates, and passages packed to its window."""
