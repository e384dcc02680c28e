"""The audit of mechanisms on databases, and faults that it must find."""
