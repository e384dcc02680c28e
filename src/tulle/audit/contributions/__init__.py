"""The audit of mechanisms on contributions, and faults that it must find."""
