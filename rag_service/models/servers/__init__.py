"""Servers of models: their clients, and what every call to one shares."""
