"""The audit of mechanisms on graphs, and faults that it must find."""
