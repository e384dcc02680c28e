"""Graphs: data, kernels, counts, statistics, spectra, and synthetic graphs."""
