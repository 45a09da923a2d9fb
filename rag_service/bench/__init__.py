"""Benchmarks: commands of the product, not timed tests.

corpus → load (ours, stock) → queries → measure (ours, stock, bare SQL) → report
"""
