"""The audit of mechanisms on relations, and faults that it must find."""
