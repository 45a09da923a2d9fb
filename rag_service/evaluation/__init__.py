"""Evaluation through the same retriever and engine that serve requests.

datasets → workspace (a throw-away corpus) → run → metrics → report, compare, plot, calibrate
"""
