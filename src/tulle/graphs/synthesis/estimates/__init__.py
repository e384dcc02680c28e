"""Degrees and blocks from noisy numbers. Nothing here sees records."""
