"""Models of synthetic graphs, one file each."""
