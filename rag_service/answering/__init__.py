"""From retrieved passages to a proved answer."""
