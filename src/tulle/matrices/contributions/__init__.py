"""Totals on a grid of cells that people contribute to."""
