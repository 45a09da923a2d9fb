"""E-mail: messages and their attachments."""
