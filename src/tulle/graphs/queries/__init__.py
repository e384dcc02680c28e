"""Questions about a graph; each owns its bound."""
