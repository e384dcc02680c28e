"""Mechanisms for counts and statistics of graphs, one file each."""
