"""Whole paths from file to report, run on neighbours with the same noise."""
