"""How much one edge can move an answer: on this graph, and on graphs some edges away."""
