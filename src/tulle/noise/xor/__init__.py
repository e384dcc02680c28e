"""Exact noise for bits: patterns that are XORed onto a matrix, their laws and limits."""
