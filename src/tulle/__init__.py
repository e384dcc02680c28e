"""Differentially private release of linked data."""

__version__ = "0.1.0"
