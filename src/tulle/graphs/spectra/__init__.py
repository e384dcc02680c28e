"""Eigenvalues and eigenvectors of a graph, released privately."""
