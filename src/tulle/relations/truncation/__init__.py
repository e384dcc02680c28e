"""Truncated totals: numbers that one participant moves by a known amount."""
