"""Random graphs that show given numbers. Nothing here sees records."""
