"""Mechanisms on relations, one file each."""
