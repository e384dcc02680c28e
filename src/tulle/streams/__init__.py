"""Counts over time: running totals, released step by step."""
