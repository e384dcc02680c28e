"""Small patterns to look for in a graph, and the compiled search for their copies."""
