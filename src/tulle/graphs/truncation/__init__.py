"""Copies of subgraphs as relations, and their truncated totals."""
