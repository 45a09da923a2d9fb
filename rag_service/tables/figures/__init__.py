"""Figures of reports: which row and year of a statement a question asks for."""
