"""The whole topology of a graph by randomized response, and what follows from it."""
