"""The routes of many people on one service: corpora and their documents, agents, conversations, users and keys."""
