"""Users with their keys, quotas, agents, conversations, answers and feedback."""
